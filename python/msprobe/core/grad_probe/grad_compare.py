"""Two trainings compared by the signs of their gradients, which task grad_probe recorded with level L1 or L2."""

import ast
import csv
import io
import os
import struct
from typing import Optional

from ..._capture.files import make_directory, write_file
from ..._capture.log import logger
from .plots import write_plot

SUMMARY = "summary"
FIRST_SIMILARITY = 0.97  # less than that at the first step
LARGEST_FALL = 0.03  # or a fall by more than that between two steps is a problem
_MOST_BYTES = 10 << 30
_SLICE = 16 << 20


class GradComparator:
    """Compares what two trainings left in rank{r}/grad_summary_{step}.csv and rank{r}/step{n}/{parameter}.npy."""

    @classmethod
    def compare_distributed(cls, path1: str, path2: str, output_dir: str) -> None:
        """Compares all ranks that both have: rank{r}/similarities.csv and a plot for each parameter.

        Args:
            path1: The dump_path of one training.
            path2: That of the other.
            output_dir: Where the results are written; made if it is not there.

        Raises:
            RuntimeError: The trainings have no rank, step or parameter in common, or other shapes.
            TypeError: A file does not hold signs.
            ValueError: A file is damaged.
            OSError: Something cannot be read or written.
        """
        ranks = _common(path1, path2, "rank")
        if not ranks:
            raise RuntimeError(f"{path1} and {path2} have no rank in common: record both with the same configuration")
        for rank in ranks:
            first, second, out = (os.path.join(path, f"rank{rank}") for path in (path1, path2, output_dir))
            cls.compare(first, second, out)

    @classmethod
    def compare(cls, path1: str, path2: str, output_dir: str) -> None:
        """Compares one rank.

        Args:
            path1: The directory of the rank in one training.
            path2: That in the other.
            output_dir: Where similarities.csv and similarities_picture are written.

        Raises:
            RuntimeError: The trainings have no step or parameter in common, or other shapes.
            TypeError: A file does not hold signs.
            ValueError: A file is damaged.
            OSError: Something cannot be read or written.
        """
        steps = _common(path1, path2, "step")
        if not steps:
            raise RuntimeError(
                f"{path1} and {path2} have no step in common: record both with grad_level L1 or L2 and the same steps"
            )
        table = _similarities(path1, path2, steps)
        for text in problems(table[SUMMARY], steps):
            logger.warning("%s: %s", os.path.basename(path1), text)
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["step", *steps])
        writer.writerows([name, *values] for name, values in table.items())
        write_file(os.path.join(output_dir, "similarities.csv"), text.getvalue().encode("utf-8-sig"))
        pictures = os.path.join(output_dir, "similarities_picture")
        make_directory(pictures)
        for name, values in table.items():
            write_plot(os.path.join(pictures, f"{name.replace('/', '_')}_similarities"), name, steps, values)


def problems(similarities: list, steps: list) -> list:
    """What is suspicious about a row of similarities.

    Args:
        similarities: Shares of elements with the same sign, 0 to 1, one a step.
        steps: Their numbers.

    Returns:
        A line for each suspicious step.
    """
    found = []
    if similarities and similarities[0] < FIRST_SIMILARITY:
        found.append(f"step {steps[0]}: similarity {similarities[0]:.4f}, below {FIRST_SIMILARITY}")
    for before, now, step in zip(similarities, similarities[1:], steps[1:]):
        if before - now > LARGEST_FALL:
            found.append(f"step {step}: similarity falls from {before:.4f} to {now:.4f}")
    return found


def _common(path1: str, path2: str, prefix: str) -> list:
    """Numbers of the directories such as rank0 that both have."""
    for path in (path1, path2):
        if not os.path.isdir(path):
            raise RuntimeError(f"{path} is not a directory: give the dump_path of a training with task grad_probe")
    numbers = [name[len(prefix) :] for name in os.listdir(path1) if name.startswith(prefix)]
    return sorted(
        int(number) for number in numbers if number.isdecimal() and os.path.isdir(os.path.join(path2, prefix + number))
    )


def _similarities(path1: str, path2: str, steps: list) -> dict:
    """Parameter -> its similarity at each step; the last row is that of all elements together."""
    names = _parameters(path1, path2)
    table: dict = {name: [] for name in names}
    table[SUMMARY] = []
    for step in steps:
        same_sum = count_sum = 0
        for name in names:
            file = os.path.join(f"step{step}", f"{name.replace('/', '_')}.npy")
            same, count = _same_signs(os.path.join(path1, file), os.path.join(path2, file))
            same_sum, count_sum = same_sum + same, count_sum + count
            table[name].append(same / count if count else 0)
        table[SUMMARY].append(same_sum / count_sum if count_sum else 0)
    return table


def _parameters(path1: str, path2: str) -> list:
    """Names in the order of the first table that both have."""
    for name in sorted(os.listdir(path1)):
        if name.endswith(".csv") and os.path.exists(os.path.join(path2, name)):
            with open(os.path.join(path1, name), newline="", encoding="utf-8-sig") as file:
                rows = list(csv.DictReader(file))
            column = next((c for c in ("param_name", "Param_name") if rows and c in rows[0]), None)
            if column is not None:
                return [row[column] for row in rows]
    raise RuntimeError(f"{path1} and {path2} have no grad_summary in common: record both with the same configuration")


def _same_signs(path1: str, path2: str) -> tuple:
    """How many elements have the same sign, and how many there are."""
    with _open(path1) as first, _open(path2) as second:
        shapes = [_header(file, path) for file, path in ((first, path1), (second, path2))]
        if shapes[0] != shapes[1]:
            raise RuntimeError(f"{path1} and {path2} have the shapes {shapes[0]} and {shapes[1]}: compare equal models")
        count = different = 0
        while True:
            a, b = first.read(_SLICE), second.read(_SLICE)
            if len(a) != len(b):
                raise ValueError(f"{path1} or {path2} is cut off: record it again")
            if not a:
                break
            count += len(a)
            # Signs are bytes of 0 or 1: those that differ are the bits of the difference.
            different += bin(int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).count("1")
    elements = 1
    for size in shapes[0]:
        elements *= size
    if count != elements:
        raise ValueError(f"{path1} holds {count} elements and not the {elements} of its shape: record it again")
    return count - different, count


def _open(path: str) -> io.BufferedReader:
    if not os.path.exists(path):
        raise RuntimeError(f"{path} does not exist: record both trainings with the same configuration")
    if os.path.getsize(path) > _MOST_BYTES:
        raise RuntimeError(f"{path} is larger than {_MOST_BYTES >> 30} GiB: it is no file of signs")
    return open(path, "rb")


def _header(file: io.BufferedReader, path: str) -> tuple:
    """The shape of an .npy file of truth values, which is read up to its elements."""
    head = file.read(10)
    described: Optional[dict] = None
    if head[:6] == b"\x93NUMPY" and len(head) == 10:
        size = struct.unpack("<H", head[8:10])[0] if head[6] == 1 else struct.unpack("<I", head[8:] + file.read(2))[0]
        try:
            described = ast.literal_eval(file.read(min(size, 1 << 16)).decode("latin1").strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            described = None
    if not isinstance(described, dict) or not isinstance(described.get("shape"), tuple):
        raise ValueError(f"{path} is not an .npy file: record it again")
    if described.get("descr") not in ("|b1", "?"):
        raise TypeError(f"{path} holds {described.get('descr')} and no signs: record with grad_level L1 or L2")
    return described["shape"]

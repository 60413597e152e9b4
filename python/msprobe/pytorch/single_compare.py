"""SingleComparator: what two runs of SingleSave have in common, one workbook for each name."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Union

from .._capture.config import MsprobeException
from .._capture.files import make_directory
from .._capture.log import logger
from .._capture.words import say, wrong
from .workbook import write_workbook

HEADER = (
    "step",
    "rank",
    "micro_step",
    "id",
    "shape1",
    "shape2",
    "相同元素百分比(%)",
    "首个不匹配元素索引",
    "最大绝对误差",
    "最大相对误差",
    "误差在千分之一内元素占比(%)",
    "误差在百分之一内元素占比(%)",
)
_MAX_PROCESSES = 64
PathLike = Union[str, "os.PathLike[str]"]


class SingleComparator:
    """Compares what two runs saved with SingleSave.

    Attributes:
        result_header: Column titles of the tables, as in mindstudio-probe: step, rank, micro step, index or key, both shapes,
            percentage of equal elements, index of the first different element (flattened), maximum absolute error, maximum
            relative error, and percentages of elements within 0.1 % and 1 %.
    """

    result_header = HEADER

    @classmethod
    def compare(
        cls, dir1: PathLike, dir2: PathLike, output_path: PathLike = "./msprobe_compare_output", num_processes: int = 8
    ) -> list[str]:
        """Compares all arrays that both runs saved and writes one workbook per name, `{output_path}/{name}.xlsx`.

        The absolute error of an element is |a - b|, the relative error |a - b| / max(|a|, |b|); equal infinities have error 0.
        If the shapes differ, the common leading part is compared, after flattening if the number of dimensions differs. Arrays
        that only one run has are skipped. So are unreadable ones, which are logged.

        Args:
            dir1: `dump_path` of the first run.
            dir2: `dump_path` of the second run.
            output_path: Directory for the workbooks; created if missing.
            num_processes: Number of threads, 1 to 64.

        Returns:
            The paths of the workbooks. (mindstudio-probe returns None.)

        Raises:
            MsprobeException: `dir1` or `dir2` does not contain a `data` directory, or `num_processes` is out of range.
            OSError: A workbook cannot be written.
        """
        if not isinstance(num_processes, int) or not 1 <= num_processes <= _MAX_PROCESSES:
            raise _wrong(
                "num_processes",
                num_processes,
                say("an integer from %(least)s to %(most)s", least=1, most=_MAX_PROCESSES),
            )
        sides = []
        for name, directory in (("dir1", dir1), ("dir2", dir2)):
            data = os.path.join(os.fspath(directory), "data")
            if not os.path.isdir(data):
                raise _wrong(name, directory, "a directory that SingleSave wrote, with `data` in it")
            sides.append({tag: dict(_arrays(data, tag)) for tag in sorted(os.listdir(data))})
        output_path = os.fspath(output_path)
        make_directory(output_path)
        tags = sorted(set(sides[0]) | set(sides[1]))
        paths = []
        with ThreadPoolExecutor(num_processes) as pool:
            for tag in tags:
                first, second = (side.get(tag, {}) for side in sides)
                rows = list(
                    pool.map(_row, [(key, first[key], second[key]) for key in sorted(set(first) & set(second))])
                )
                path = os.path.join(output_path, f"{tag}.xlsx")
                write_workbook(path, HEADER, [row for row in rows if row is not None])
                logger.info("%s: %d arrays compared.", path, len(rows))
                paths.append(path)
        return paths


def _wrong(name: str, value: Any, allowed: str) -> MsprobeException:
    text = wrong(name, repr(value), allowed, "SingleComparator.compare")
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _numbered(directory: str, prefix: str) -> Iterator[tuple[int, str]]:
    if not os.path.isdir(directory):
        return
    for name in os.listdir(directory):
        if re.fullmatch(rf"{prefix}\d{{1,9}}", name):
            yield int(name[len(prefix) :]), os.path.join(directory, name)


def _arrays(data: str, tag: str) -> Iterator[tuple[tuple, str]]:
    """The arrays of one name: ((step, rank, micro step, number or key), path)."""
    for step, of_step in _numbered(os.path.join(data, tag), "step"):
        for rank, of_rank in _numbered(of_step, "rank"):
            for micro, directory in [(0, of_rank), *_numbered(of_rank, "micro_step")]:
                for name in os.listdir(directory):
                    if name.endswith(".npy") and name.startswith(tag):
                        last = name[len(tag) : -len(".npy")].lstrip(".")
                        # Numbers before keys, so that they can be sorted.
                        key = (0, int(last), "") if last.isdigit() else (0, 0, "") if not last else (1, 0, last)
                        yield (step, rank, micro, key), os.path.join(directory, name)


def _row(pair: tuple) -> Any:
    (step, rank, micro, key), path1, path2 = pair
    try:
        shapes, numbers = _compare(path1, path2)
    except (OSError, ValueError, EOFError) as error:
        logger.error("%s and %s cannot be compared: %s", path1, path2, error)
        return None
    return (step, rank, micro, key[2] or key[1], *map(str, shapes), *numbers)


def _compare(path1: str, path2: str) -> tuple:
    import numpy as np

    first, second = (np.load(path, allow_pickle=False) for path in (path1, path2))
    shapes = list(first.shape), list(second.shape)
    if first.ndim != second.ndim:
        first, second = first.ravel(), second.ravel()
    common = tuple(slice(min(a, b)) for a, b in zip(first.shape, second.shape))
    a, b = (array[common].astype(np.float64, copy=False).ravel() for array in (first, second))
    if a.size == 0:
        return shapes, (100.0, None, 0.0, 0.0, 100.0, 100.0)
    with np.errstate(all="ignore"):
        same = a == b
        error = np.where(same, 0.0, np.abs(a - b))  # equal infinities differ by nothing
        size = np.maximum(np.abs(a), np.abs(b))
        relative = np.nan_to_num(error / size)
        shares = [100.0 * float(np.mean(error <= bound * size)) for bound in (0.001, 0.01)]
    first_other = None if same.all() else int(np.argmin(same))
    return shapes, (100.0 * float(same.mean()), first_other, float(error.max()), float(relative.max()), *shares)

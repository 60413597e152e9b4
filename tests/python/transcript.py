"""Consoles that a page shows: its commands run as they stand, and what is quoted is held to what they print."""

import math
import re

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?:step |step)?\d[\d,]*(?:\.\d+)?")
# Sums in another order on another processor move a training by this much in some hundred steps.
_TOLERANCE = 0.4
_GAP = "..."


def consoles(text):
    """Each command of the page with the lines that the page quotes of it."""
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *quoted = part.splitlines()
            yield command, quoted


def _near(quoted, printed):
    if quoted.startswith("step") or printed.startswith("step"):
        return quoted == printed
    return math.isclose(float(quoted.replace(",", "")), float(printed.replace(",", "")), rel_tol=_TOLERANCE)


def same_line(quoted, printed):
    """Equal words and steps, and other numbers near each other; a quoted line that ends in `...` is a beginning."""
    if quoted.endswith(_GAP):
        words = _NUMBER.split(quoted[: -len(_GAP)].rstrip(" "))
        printed_words = _NUMBER.split(printed)
        begins = len(words) <= len(printed_words) and printed_words[len(words) - 1].startswith(words[-1])
        equal = begins and words[:-1] == printed_words[: len(words) - 1]
    else:
        equal = _NUMBER.split(quoted) == _NUMBER.split(printed)
    return equal and all(map(_near, _NUMBER.findall(quoted), _NUMBER.findall(printed)))


def missing_lines(quoted, printed):
    """The quoted lines that were not printed in this order; a line `...` stands for any lines."""
    at, gap, missing = 0, False, []
    for line in quoted:
        if line.strip() == _GAP:
            gap = True
            continue
        places = range(at, len(printed)) if gap else range(at, min(at + 1, len(printed)))
        found = next((place for place in places if same_line(line, printed[place])), None)
        if found is None:
            missing.append(line)
        else:
            at, gap = found + 1, False
    return missing + (printed[at:] if quoted and not gap else [])

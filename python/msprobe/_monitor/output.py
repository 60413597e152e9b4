"""Where a monitor writes: a directory for each rank and start, named by time, rank and eight random digits."""

import os
import re
import uuid
from datetime import datetime, timedelta, timezone
from typing import Optional

_FORM = "%b%d_%H-%M-%S"
_NAME = re.compile(r"([\w-]{0,20})-rank(\d{1,5})-")
# The zone of the names that mindstudio-probe gives, wherever the training runs.
_ZONE = timezone(timedelta(hours=8))


def base_directory() -> str:
    """Returns MONITOR_OUTPUT_DIR, or ./monitor_output."""
    return os.getenv("MONITOR_OUTPUT_DIR", "./monitor_output")


def time_name() -> str:
    """Returns the time as directories are named by it, such as Dec03_21-34-40."""
    return datetime.now(_ZONE).strftime(_FORM)


def new_directory(rank: int) -> str:
    """Names the directory of a rank that starts now."""
    return os.path.join(base_directory(), f"{time_name()}-rank{rank}-{uuid.uuid4().hex[:8]}")


def parse_time(text: Optional[str]) -> Optional[datetime]:
    """Reads the time of a directory's name.

    Args:
        text: Such as Dec03_21-34-40; None for no bound.

    Returns:
        The time, of year 1900; None for None.

    Raises:
        ValueError: It is no such text.
    """
    if text is None:
        return None
    try:
        return datetime.strptime(f"1904 {text}", f"%Y {_FORM}")
    except (TypeError, ValueError):
        raise ValueError(
            f"{text!r} is not the time of an output directory of a monitor: it looks like Dec03_21-34-40"
        ) from None


def rank_directories(base: str, begin: Optional[str], end: Optional[str]) -> dict:
    """Finds the directories of ranks that started between two times, both included.

    Args:
        base: The output directory of monitors.
        begin: The first time, such as Dec03_21-34-40; None for no bound.
        end: The last time; None for no bound.

    Returns:
        Rank -> directory; of several of one rank the last by name.

    Raises:
        ValueError: A time is none, or the first is after the last.
        OSError: The directory cannot be read.
    """
    first, last = parse_time(begin), parse_time(end)
    if first and last and first > last:
        raise ValueError(f"the first time ({begin}) is after the last one ({end})")
    found = {}
    for name in sorted(os.listdir(base)):
        match = _NAME.match(name)
        if not match or not os.path.isdir(os.path.join(base, name)):
            continue
        try:
            started = parse_time(match.group(1))
        except ValueError:
            continue
        if started and (first is None or started >= first) and (last is None or started <= last):
            found[int(match.group(2))] = os.path.join(base, name)
    return found

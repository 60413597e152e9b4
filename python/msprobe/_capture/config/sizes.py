"""Numbers of bytes as people write them, and the budget that is given in them."""

import re
from typing import Any, Callable, Optional

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|[kKMGT]i?B)?\s*")
_UNITS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(value: Any) -> Optional[int]:
    """The bytes of "20GB", "1.5 MiB" or a number; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value > 0 else None
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return None
    unit = match[2] or "B"
    return int(float(match[1]) * (1024 if "i" in unit else 1000) ** _UNITS[unit[0].upper()]) or None


def read_budget(value: Any, wrong: Callable[[str, Any, str], Exception]) -> dict:
    """{"disk": bytes, "slowdown": factor}, each where it is given; raises what `wrong` makes of key, value and what is allowed."""
    if not isinstance(value, dict) or set(value) - {"disk", "slowdown"}:
        raise wrong("budget", value, 'an object such as {"disk": "20GB", "slowdown": 1.5}')
    result: dict = {}
    disk, factor = value.get("disk"), value.get("slowdown")
    if disk is not None:
        result["disk"] = parse_size(disk)
        if result["disk"] is None:
            raise wrong("budget.disk", disk, 'a size such as "20GB" or "500MiB", or a number of bytes')
    if factor is not None:
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not factor > 1:
            raise wrong("budget.slowdown", factor, "a number above 1, such as 1.5")
        result["slowdown"] = float(factor)
    return result

"""Arguments of the methods of PrecisionDebugger, and what is wrong with them."""

import os
from collections.abc import Mapping
from typing import Any, NoReturn, Optional

from .config import MsprobeException
from .words import wrong


def is_model(value: Any, module_type: type) -> bool:
    """Tells whether it is a module or a list of modules."""
    if isinstance(value, module_type):
        return True
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(m, module_type) for m in value)


def is_index(value: Any) -> bool:
    """Tells whether it is an integer, 0 or greater."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_start(token_range: Any, rank_id: Any) -> None:
    """Rejects wrong arguments of start()."""
    if token_range is not None:
        fits = isinstance(token_range, (list, tuple)) and len(token_range) == 2 and all(map(is_index, token_range))
        if not fits or token_range[0] > token_range[1]:
            refuse(wrong("token_range", repr(token_range), "[first, last], counted from 0, both included", "start"))
    if rank_id is not None and not is_index(rank_id):
        refuse(wrong("rank_id", repr(rank_id), "an integer from 0", "start"))


def refuse(text: str) -> NoReturn:
    """Raises the exception for an invalid argument."""
    raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def rank_of_launcher(rank: str, size: str, environment: Mapping[str, str] = os.environ) -> Optional[int]:
    """What the launcher said before ranks are known to the framework: they must not share a directory."""
    own, count = environment.get(rank, ""), environment.get(size, "")
    if own.isdecimal() and count.isdecimal() and int(own) < int(count) > 1:
        return int(own)
    return None

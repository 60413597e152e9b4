"""module_dump() and module_dump_end(): the calls of one module, under a name that the script gives it."""

import torch

from .._capture.words import wrong
from . import hooks
from .arguments import refuse
from .debugger import PrecisionDebugger


def module_dump(module: torch.nn.Module, dump_name: str) -> None:
    """Records the calls of one module under a name of your choice, and no functions, until module_dump_end().

    Call it between start() and stop(). A module that belongs to the model passed to start() keeps its name from there.

    Args:
        module: The module.
        dump_name: Its entries are named `Module.{dump_name}.{Class}.forward.{count}` and `...backward.{count}`.

    Raises:
        MsprobeException: `module` is not a torch.nn.Module, `dump_name` is not a string, or PrecisionDebugger has not been
            constructed.
    """
    PrecisionDebugger._get()
    if not isinstance(module, torch.nn.Module):
        refuse(wrong("module", f"a {type(module).__name__}", "torch.nn.Module", "module_dump"))
    if not isinstance(dump_name, str):
        refuse(wrong("dump_name", repr(dump_name), "text", "module_dump"))
    hooks.begin_module_dump(module, dump_name)


def module_dump_end() -> None:
    """Ends module_dump(). Functions are recorded again if the level includes them.

    Raises:
        MsprobeException: PrecisionDebugger has not been constructed.
    """
    PrecisionDebugger._get()
    hooks.end_module_dump()

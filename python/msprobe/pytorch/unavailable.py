"""Names of mindstudio-probe that this release cannot serve: graphs on Ascend NPUs.

They can be imported anywhere. Calling one raises a RuntimeError that says what it needs and what to use instead.
"""

import importlib.util
from typing import Any, NoReturn

from .._capture.words import say


def _refuse(name: str, package: str, instead: str) -> NoReturn:
    text = _INSTALLED if importlib.util.find_spec(package) is not None else _NOT_INSTALLED
    raise RuntimeError(say(text, name=name, package=package, instead=say(instead)))


_INSTALLED = (
    "%(name)s records graphs that run on an Ascend NPU and needs %(package)s, which is installed, but this release does not "
    "record such graphs: %(instead)s"
)
_NOT_INSTALLED = (
    "%(name)s records graphs that run on an Ascend NPU and needs %(package)s, which is not installed, and this release does "
    "not record such graphs: %(instead)s"
)
_EAGER = "run the model without the graph compiler and use PrecisionDebugger"


def set_fx_dump_config(*args: Any, **kwargs: Any) -> NoReturn:
    """Not in this release: dumps of FX graphs compiled by torchair. The error names an alternative.

    Args:
        *args: Ignored.
        **kwargs: Ignored.

    Raises:
        RuntimeError: Always.
    """
    _refuse("set_fx_dump_config", "torchair", _EAGER)


def set_ge_dump_config(*args: Any, **kwargs: Any) -> NoReturn:
    """Not in this release: dumps of GE graphs compiled by torchair. The error names an alternative.

    Args:
        *args: Ignored.
        **kwargs: Ignored.

    Raises:
        RuntimeError: Always.
    """
    _refuse("set_ge_dump_config", "torchair", _EAGER)


def acl_save(*args: Any, **kwargs: Any) -> NoReturn:
    """Not in this release: saving a tensor inside an ACL graph. The error names an alternative.

    Args:
        *args: Ignored.
        **kwargs: Ignored.

    Raises:
        RuntimeError: Always.
    """
    _refuse("acl_save", "torch_npu", "use PrecisionDebugger.save at level debug outside of the graph")


class AclGraphDumper:
    """Not in this release: dumps of the ACL graphs of vLLM-Ascend."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises an error that names an alternative.

        Args:
            *args: Ignored.
            **kwargs: Ignored.

        Raises:
            RuntimeError: Always.
        """
        _refuse("AclGraphDumper", "torch_npu", _EAGER)

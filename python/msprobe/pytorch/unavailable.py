"""Names of the earlier tool that this release cannot serve: graphs on Ascend NPUs, the monitor. They can be imported
anywhere; calling one says what it needs."""

import importlib.util
from typing import Any, NoReturn


def _refuse(name: str, package: str, instead: str) -> NoReturn:
    state = "is installed, but" if importlib.util.find_spec(package) is not None else "is not installed, and"
    raise RuntimeError(
        f"{name} records graphs that run on an Ascend NPU and needs {package}, which {state} this release does not record "
        f"such graphs: {instead}"
    )


_EAGER = "run the model without the graph compiler and use PrecisionDebugger"


def set_fx_dump_config(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("set_fx_dump_config", "torchair", _EAGER)


def set_ge_dump_config(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("set_ge_dump_config", "torchair", _EAGER)


def acl_save(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("acl_save", "torch_npu", "use PrecisionDebugger.save at level debug outside of the graph")


class AclGraphDumper:
    def __init__(self, *args: Any, **kwargs: Any):
        _refuse("AclGraphDumper", "torch_npu", _EAGER)


class TrainerMon:
    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(
            "TrainerMon (the monitor of gradients, optimizer states and activations over a whole training) is not part of this "
            "release: collect statistics of single steps with PrecisionDebugger, or use TrainerMon of mindstudio-probe in an "
            "environment of its own"
        )

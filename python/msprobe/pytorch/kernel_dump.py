"""Level L2: the kernels of one call of a function, dumped by the runtime of an NPU (ACL).

The runtime reads what to dump from a file that is written here, beside the step's other files, and learns where the call
begins and ends: of a backward, when the gradient of the call's result has come, and when the last gradient of its
tensors has left.
"""

import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch

from .._capture.arguments import refuse
from .._capture.config import Config
from .._capture.files import write_file
from .._capture.words import say, wrong
from .apis import Api, hooked_apis
from .hook_points import callback

_NAME = re.compile(r"(?P<base>\w+\.\w+)\.(?P<number>\d+)\.(?P<direction>forward|backward)")


class Call(NamedTuple):
    """Which call of which function is dumped."""

    api: Api
    number: int
    backward: bool


def missing() -> str:
    """Returns what this process lacks, or an empty string."""
    npu = getattr(torch, "npu", None)
    if npu is None or not npu.is_available():
        return "no NPU"
    lacks = [name for name in ("init_dump", "set_dump", "finalize_dump", "synchronize") if not hasattr(npu, name)]
    return f"torch_npu without {lacks[0]}()" if lacks else ""


def chosen(config: Config) -> Call:
    """Returns the call that the configuration names.

    Raises:
        MsprobeException: The task is not tensor, scope is not empty, or list does not hold exactly one name of a call.
    """
    if config.task != "tensor":
        refuse(wrong("task", config.task, "tensor at level L2", config.place("task")))
    if config.scope:
        refuse(wrong("scope", config.scope, "[] at level L2", config.place("scope")))
    name = _NAME.fullmatch(config.list_[0]) if len(config.list_) == 1 else None
    if name is None:
        allowed = say("one name of a call at level L2, as Functional.linear.0.forward")
        refuse(wrong("list", list(config.list_), allowed, config.place("list")))
    for api in hooked_apis(torch, config.custom_apis, config.exclude_apis):
        if f"{api.prefix}.{api.name}" == name["base"]:
            return Call(api, int(name["number"]), name["direction"] == "backward")
    text = "list holds %(name)s: there is no function of this name (%(place)s)"
    refuse(say(text, name=config.list_[0], place=config.place("list")))


def settings(directory: str) -> dict:
    """Returns the content of the file for the runtime; it dumps into `directory`."""
    return {"dump": {"dump_list": [], "dump_path": directory, "dump_mode": "all", "dump_op_switch": "on"}}


class KernelDump:
    """Between begin() and end() the function stands behind another one that counts its calls."""

    def __init__(self, call: Call) -> None:
        """Replaces nothing yet."""
        self._call = call
        self._original: Optional[Any] = None
        self._number = 0
        self._path = ""

    def begin(self, directory: str) -> None:
        """Writes the settings and replaces the function; calls are counted from 0 in each directory.

        Raises:
            ValueError: The settings cannot be written.
        """
        path = os.path.join(directory, f"kernel_config_{os.getpid()}.json")
        if path != self._path:
            self._path, self._number = path, 0
        try:
            write_file(path, json.dumps(settings(os.path.abspath(directory)), indent=4).encode())
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        if self._original is None:
            self._original = getattr(self._call.api.owner, self._call.api.attr)
            setattr(self._call.api.owner, self._call.api.attr, self._counting(self._original))

    def end(self) -> None:
        """Puts the function back."""
        if self._original is not None:
            setattr(self._call.api.owner, self._call.api.attr, self._original)
            self._original = None

    def _counting(self, original: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            number, self._number = self._number, self._number + 1
            if number != self._call.number:
                return original(*args, **kwargs)
            if self._call.backward:
                result = original(*args, **kwargs)
                self._watch_backward(args, result)
                return result
            self._dump()
            try:
                return original(*args, **kwargs)
            finally:
                self._finish()

        return call

    def _watch_backward(self, args: tuple, result: Any) -> None:
        """Hooks see gradients in passing and change none."""
        waiting = [t for t in args if isinstance(t, torch.Tensor) and t.requires_grad]
        if not (waiting and isinstance(result, torch.Tensor) and result.requires_grad):
            return
        left = len(waiting)

        def passed(_: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._finish()

        result.register_hook(callback(lambda _: self._dump()))
        for tensor in waiting:
            tensor.register_hook(callback(passed))

    def _dump(self) -> None:
        npu = torch.npu
        npu.synchronize()
        npu.init_dump()
        npu.set_dump(self._path)
        npu.synchronize()

    def _finish(self) -> None:
        torch.npu.synchronize()
        torch.npu.finalize_dump()

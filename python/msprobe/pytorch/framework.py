"""PyTorch as the framework of a capture."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch

from .._capture.arguments import rank_of_launcher
from .._capture.config import Config
from .._capture.framework import Framework
from .._capture.free_benchmark import Settings as BenchmarkSettings
from .._capture.words import say, wrong
from .._compat import distributed_module
from . import dataloader, hooks, kernel_dump, recorder
from .arguments import check_model
from .free_benchmark import FreeBenchmark
from .grad_probe import GradProbe
from .hook_points import callback
from .load_inputs import TorchInputLoader
from .online_check import Feed
from .online_check import Settings as OnlineSettings
from .seed import seed_all

# What a task or level needs that is not here, and what to use instead.
_REPLAYS = (
    "%(name)s %(value)s calls single functions again and is not a capture; capture task tensor and run msprobe acc_check on its "
    "dump.json (%(place)s)"
)
_UNAVAILABLE = {
    "nan_check": (
        "%(name)s %(value)s needs an NPU with torch_npu and its compiled nan_check extension; task overflow_check finds NaN and "
        "infinities on any device (%(place)s)"
    ),
    "acc_check": _REPLAYS,
    "run_ut": _REPLAYS,
    "L2": (
        "%(name)s %(value)s records kernels through the runtime of an NPU, and here is %(lacks)s; level mix records modules and "
        "functions on any device (%(place)s)"
    ),
}


class PyTorch(Framework):
    """What lifecycle.py asks is what the modules beside this one do."""

    module_type = torch.nn.Module
    tensor_type = torch.Tensor
    _kernels: Optional[kernel_dump.KernelDump] = None
    _benchmark: Optional[FreeBenchmark] = None

    @property
    def has_overflow_flag(self) -> bool:  # type: ignore[override]
        """Whether a device has one that could be looked at."""
        return hasattr(torch, "npu") and torch.npu.is_available()

    def seed(self, config: Config) -> None:
        """Seeds the generators as the configuration says."""
        seed_all(config.seed, config.is_deterministic)

    def unavailable(self, config: Config) -> str:
        """Explains why the task or level of the configuration cannot be recorded here; empty if it can."""
        for name, value in (("task", config.task), ("level", config.level)):
            lacks = kernel_dump.missing() if value == "L2" else ""
            if value in _UNAVAILABLE and (lacks or value != "L2"):
                return say(_UNAVAILABLE[value], name=name, value=value, place=config.place(name), lacks=say(lacks))
        if config.task == "free_benchmark":
            name, value, allowed = BenchmarkSettings.of(config.section).fault()
            return wrong(name, str(value), allowed, config.place(name)) if name else ""
        online = OnlineSettings.of(config.section) if config.task == "tensor" else OnlineSettings()
        name, value, allowed = online.fault()
        if name:
            return wrong(name, str(value), allowed, config.place(name))
        if online.online_run_ut and config.level not in ("L1", "mix"):
            return wrong("level", config.level, "L1, mix with online_run_ut", config.place("level"))
        return ""

    def check_model(self, model: Any) -> None:
        """Raises MsprobeException unless it is a model or a list of models."""
        check_model(model)

    def rank_of_process(self) -> Optional[int]:
        """Returns the rank of torch.distributed; before it is initialised, that of the launcher."""
        distributed = distributed_module()
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank()
        return rank_of_launcher("RANK", "WORLD_SIZE")

    def ranks_of_training(self) -> int:
        """Returns the number of ranks of torch.distributed, or 0 before it is initialised."""
        distributed = distributed_module()
        return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 0

    def init(self) -> None:
        """Tells the recorder which framework it records."""
        recorder.init()

    def set_up(self, config: Config) -> None:
        """Prepares the hooks of a configuration; none is in place before start()."""
        if self._kernels is not None:
            self._kernels.end()
        self._kernels = kernel_dump.KernelDump(kernel_dump.chosen(config)) if config.level == "L2" else None
        if self._benchmark is not None:
            self._benchmark.end()
        self._benchmark = FreeBenchmark(config) if config.task == "free_benchmark" else None
        hooks.set_up(config)

    def add_new_ops(self, config: Config) -> None:
        """Hooks operators registered and extensions imported since the last call."""
        hooks.add_new_ops(config)

    def add_model(self, model: Any, number: Optional[int] = None) -> None:
        """Hooks the modules of a model or of several; `number` is the index of a single one among several."""
        hooks.add_model(model, number)

    def named_modules(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Yields every module below the roots with the prefix of its entries."""
        return hooks.named_modules(model)

    def mark_phases(self) -> None:
        """Lists what runs inside clip_grad functions under them in construct.json."""
        hooks.mark_phases()

    def mark_optimizers(self) -> None:
        """Lists what runs inside optimizers under them in construct.json, while recording."""
        hooks.mark_optimizers()

    def drive_runtime(self, config: Config, directory: str) -> bool:
        """In place of a recording: at level L2 the runtime of an NPU dumps, with task free_benchmark calls are made again."""
        if self._benchmark is not None:
            self._benchmark.begin(directory, int(os.path.basename(os.path.dirname(directory)).removeprefix("step")))
            return True
        if self._kernels is None:
            return False
        self._kernels.begin(directory)
        return True

    def end_runtime_step(self, config: Config, directory: str) -> str:
        """Returns what was done in the step."""
        if self._benchmark is not None:
            return self._benchmark.end_step()
        return super().end_runtime_step(config, directory)

    def records(self, config: Config) -> bool:
        """Tells whether start() and stop() have something to do at the level of the configuration."""
        return super().records(config) or config.level == "L2"

    def stop_recording(self) -> str:
        """Stops recording. Returns an error message, or an empty string."""
        if self._kernels is not None:
            self._kernels.end()
        if self._benchmark is not None:
            self._benchmark.end()
            return ""
        return hooks.stop_recording()

    def count_tokens(self, model: Any, token_range: Any) -> None:
        """Records the forward passes of the root model numbered first to last, counted from 0, once (inference)."""
        hooks.count_tokens(model, token_range)

    def before_forward(self, model: Any, call: Callable[[], None]) -> Optional[Callable[[], None]]:
        """Has `call` called before each forward of a model. Returns what ends that."""
        return hooks.before_forward(model, call)

    def add_custom(self, module: Any, api: str, prefix: Any = None) -> str:
        """Hooks one function. Returns why that is impossible, or an empty string."""
        return hooks.add_custom(module, api, prefix)

    def remove_custom(self, module: Any, api: str) -> bool:
        """Undoes add_custom(). Returns False if there is nothing to undo."""
        return hooks.remove_custom(module, api)

    def hook_gradient(self, tensor: Any, arrived: Callable[[Any], None]) -> Any:
        """Has `arrived` called with the gradient of a tensor, if it gets one."""
        if not tensor.requires_grad:
            return None
        return tensor.register_hook(callback(arrived))

    def parameter_bytes(self, models: list) -> tuple[int, int]:
        """Returns the bytes of all parameters, and of those that get a gradient now."""
        parameters = {id(p): p for model in models for p in model.parameters()}.values()
        whole = sum(p.numel() * p.element_size() for p in parameters)
        trained = sum(p.numel() * p.element_size() for p in parameters if p.requires_grad)
        return whole, trained * torch.is_grad_enabled()

    def follow_batches(self, begin: Callable[[], None], end: Callable[[], None]) -> Callable[[], None]:
        """Calls `begin` when a batch of a DataLoader is there and `end` when the next is asked for."""
        return dataloader.follow(begin, end)

    def input_loader(self, config: Config) -> Any:
        """Returns what replaces inputs of modules as `load` says, or None."""
        return TorchInputLoader(config.load)

    def online_feed(self, config: Config) -> Any:
        """Returns what sends the recorded calls to a checker, if the configuration asks for it."""
        settings = OnlineSettings.of(config.section) if config.task == "tensor" else OnlineSettings()
        return Feed(settings) if settings.online_run_ut else None

    def grad_probe(self, config: Config, before: Any) -> Any:
        """Returns what lists the gradients at each step of an optimizer."""
        return GradProbe(config, before)


PYTORCH = PyTorch()

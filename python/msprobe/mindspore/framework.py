"""MindSpore as the framework of a capture."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Optional

import mindspore
from mindspore import nn

from .. import _core
from .._capture.arguments import is_model, rank_of_launcher, refuse
from .._capture.config import Config
from .._capture.framework import Framework
from .._capture.free_benchmark import Settings as BenchmarkSettings
from .._capture.guard import shielded
from .._capture.words import say, wrong
from . import graph_cells, graph_files, hooks, kernels, releases
from .free_benchmark import MODES, FreeBenchmark
from .grad_probe import GradProbe
from .load_inputs import MindSporeInputLoader
from .seed import seed_all

# What a task or key needs that is not here, and what to use instead.
_REPLAYS = (
    "task %(value)s replays single functions and is not a capture; capture task tensor on both sides and run msprobe compare "
    "(%(place)s)"
)
_COMPARES = "%(name)s compares while the training runs, which is for PyTorch; capture two runs and run msprobe compare (%(place)s)"
_UNAVAILABLE = {
    "acc_check": _REPLAYS,
    "run_ut": _REPLAYS,
    "diff_check": _COMPARES,
    "nan_check": "task %(value)s needs an NPU; task overflow_check finds NaN and infinities on any device (%(place)s)",
}


class MindSpore(Framework):
    """What lifecycle.py asks is what the modules beside this one do."""

    module_type = nn.Cell
    module_word = "Cell"
    levels_of_models = ("L0", "L1", "mix")  # Primitives are found in Cells
    levels_of_decisions = ("L0", "L1", "mix", "L2")  # L2: operators, or settings of MindSpore's own dump
    tensor_type = mindspore.Tensor

    def __init__(self) -> None:
        """Knows no configuration yet."""
        self._config: Optional[Config] = None
        self._benchmark: Optional[FreeBenchmark] = None

    def seed(self, config: Config) -> None:
        """Seeds the generators as the configuration says."""
        seed_all(config.seed, config.is_deterministic)

    def unavailable(self, config: Config) -> str:
        """Explains why the task or level of the configuration cannot be recorded here; empty if it can."""
        if config.task in _UNAVAILABLE:
            return say(_UNAVAILABLE[config.task], name=config.task, value=config.task, place=config.place("task"))
        if config.task == "free_benchmark":
            if config.level != "L1":
                return wrong("level", config.level, "L1", config.place("level"))
            name, value, allowed = BenchmarkSettings.of(config.section).fault(MODES)
            return wrong(name, str(value), allowed, config.place(name)) if name else releases.unavailable(config)
        if config.task == "tensor" and config.bench_path:
            return say(_COMPARES, name="bench_path", place=config.place("bench_path"))
        if config.enable_dataloader:
            text = "enable_dataloader is for PyTorch; call start(), stop() and step() (%(place)s)"
            return say(text, place=config.place("enable_dataloader"))
        return releases.unavailable(config)

    def grad_probe(self, config: Config, before: Any) -> Any:
        """Returns what lists the gradients that optimizers are called with."""
        return GradProbe(config, before, self.rank_of_process)

    def check_model(self, model: Any) -> None:
        """Raises MsprobeException unless it is a Cell or a list of Cells."""
        if not is_model(model, nn.Cell):
            text = "%(name)s is %(value)s; allowed: %(allowed)s"
            allowed = say("mindspore.nn.Cell, or a list of them")
            refuse(say(text, name="model", value=f"a {type(model).__name__}", allowed=allowed))

    def rank_of_process(self) -> Optional[int]:
        """Returns the rank of mindspore.communication; before it is initialised, that of the launcher."""
        world = mindspore.communication.GlobalComm
        if getattr(world, "INITED", False):
            return mindspore.communication.get_rank()
        return rank_of_launcher("RANK_ID", "RANK_SIZE")

    def init(self) -> None:
        """Tells the recorder which framework it records."""
        hooks.init()
        releases.tell_at_construction()

    def set_up(self, config: Config) -> None:
        """Prepares the hooks of a configuration; none is in place before start()."""
        self._config = config
        if self._benchmark is not None:
            self._benchmark.close()
            self._benchmark = None
        if config.task == "free_benchmark":
            hooks.set_up_compiler(config)
            self._benchmark = FreeBenchmark(config, self.rank_of_process)
            return
        if graph_cells.are_meant(config):
            graph_cells.prepare(config)
        hooks.set_up(config)

    def add_model(self, model: Any, number: Optional[int] = None) -> None:
        """Hooks the Cells of a model or of several, and their Primitives; `number` is the index of a single one."""
        if self._benchmark is not None:
            return None
        if graph_cells.are_meant(self._config):
            return graph_cells.wrap(hooks.named_cells(model, number), self._config)
        hooks.add_model(model, self._config, number)

    def named_modules(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Yields every Cell below the roots with the prefix of its entries."""
        return hooks.named_cells(model)

    def records(self, config: Config) -> bool:
        """Tells whether start() and stop() have something to do at the level of the configuration."""
        return super().records(config) or kernels.are_seen(config)

    def drive_runtime(self, config: Config, directory: str) -> bool:
        """In GRAPH_MODE at level L0 the compiled Cells dump, with task free_benchmark calls are made again; nothing is recorded."""
        if self._benchmark is not None:
            self._benchmark.begin(directory, int(os.path.basename(os.path.dirname(directory)).removeprefix("step")))
            return True
        return graph_cells.are_meant(config)

    def end_runtime_step(self, config: Config, directory: str) -> str:
        """Makes the files of the step of what the Cells dumped, or says what was made again."""
        if self._benchmark is not None:
            return self._benchmark.end_step()
        mindspore.runtime.synchronize()
        graph_files.collect(config.dump_path, directory, config.task, config.level)
        return super().end_runtime_step(config, directory)

    def begin_recording(self, config: Config) -> None:
        """Shows operators to the recorder where the configuration is about them."""
        releases.tell_in_step()
        if kernels.are_seen(config):
            kernels.enter()

    def stop_recording(self) -> str:
        """Stops recording. Returns an error message, or an empty string."""
        if self._benchmark is not None:
            self._benchmark.end()
            return ""
        kernels.leave()
        return _core.stop()

    def count_tokens(self, model: Any, token_range: Any) -> None:
        """Records the forward passes of the root model numbered first to last, counted from 0, once (inference)."""
        hooks.count_tokens(model, token_range)

    def add_custom(self, module: Any, api: str, prefix: Any = None) -> str:
        """Hooks one function. Returns why that is impossible, or an empty string."""
        return hooks.add_custom(module, api, prefix)

    def remove_custom(self, module: Any, api: str) -> bool:
        """Undoes add_custom(). Returns False if there is nothing to undo."""
        return hooks.remove_custom(module, api)

    def input_loader(self, config: Config) -> Any:
        """Returns what replaces inputs of Cells as `load` says."""
        return MindSporeInputLoader(config.load)

    def hook_gradient(self, tensor: Any, arrived: Callable[[Any], None]) -> Any:
        """Has `arrived` called with the gradient of a tensor, if it gets one."""
        if getattr(tensor, "_grad_node", None) is None and not getattr(tensor, "requires_grad", False):
            return None
        return tensor.register_hook(shielded(arrived))

    def parameter_bytes(self, models: list) -> tuple[int, int]:
        """Returns the bytes of all parameters, and of those that get a gradient."""
        parameters = {id(p): p for model in models for p in model.get_parameters()}.values()
        return sum(p.nbytes for p in parameters), sum(p.nbytes for p in parameters if p.requires_grad)


MINDSPORE = MindSpore()

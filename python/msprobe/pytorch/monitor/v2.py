"""TrainerMonitorV2 of PyTorch: the hooks of TrainerMon, with rows of their own form."""

from types import SimpleNamespace
from typing import Any, Optional

import torch

from ..._capture.log import logger
from ..._compat import distributed_module
from ..._monitor.v2_config import V2Config
from ..._monitor.v2_files import V2Files
from ..._monitor.v2_phases import V2Phases
from .. import recorder
from .activations import ModuleWatch
from .communication import CommunicationWatch
from .compiled import CompiledWatch
from .faults import OURS
from .gradients import UnreducedGradients
from .optimizers import OptimizerView, view_of
from .step_hooks import StepHooks
from .values import Values

dist = distributed_module()

_MOST_CALLS = 4096  # of a module within a step


class MonitorV2(V2Phases):
    """One process of TrainerMonitorV2."""

    faults = OURS

    def __init__(self, config: V2Config) -> None:
        """Makes the output directory, if this rank is monitored.

        Args:
            config: What is wanted.

        Raises:
            ValueError: The directory cannot be written.
        """
        recorder.init()
        initialized = dist.is_available() and dist.is_initialized()
        super().__init__(config, dist.get_rank() if initialized else 0)
        if self._files is not None:
            self._values = Values(self._files)
        self._modules: Optional[V2Modules] = None
        self._communication: Optional[CommunicationWatch] = None
        self._view: Optional[OptimizerView] = None
        self._names: dict = {}

    def start(self, model: Any, optimizer: Any, **context: Any) -> None:
        """Hooks what the configuration asks for; see TrainerMonitorV2."""
        if self._files is None or self._parts:
            return
        kinds = self._config.monitors
        chunks = self._begin(model, optimizer, context)
        self._names = {p: prefix + name for prefix, m in chunks for name, p in m.named_parameters()}
        if optimizer is not None:
            self._view = view_of(optimizer)
            self._parts.append(StepHooks(self._view.optimizer, self._before_step, self._after_step))
        if "module" in kinds:
            self._watch_modules(chunks)
        if "weight_grad" in kinds:
            self._watch_gradients([m for _, m in chunks])
        if "cc" in kinds and self._has_communication():
            self._watch_communication()
        self._parts.append(CompiledWatch())
        self._arm()

    def _has_communication(self) -> bool:
        ranks = self._config.monitors["cc"].module_ranks
        return dist.is_available() and dist.is_initialized() and (not ranks or self.rank in ranks)

    def _watch_modules(self, chunks: list) -> None:
        self._modules = V2Modules(self._files, self._values, self._guard)
        for parts in (self._parts, self._watching, self._counting):
            parts.append(self._modules)
        for prefix, chunk in chunks:
            for name, module in chunk.named_modules():
                if self._is_target(prefix + name):
                    self._modules.add(module, prefix + name)

    def _watch_gradients(self, models: list) -> None:
        mbs = bool(self._config.monitors["weight_grad"].options.get("monitor_mbs_grad", False))
        trained = {p: name for p, name in self._names.items() if p.requires_grad}
        main_grad = any(hasattr(p, "main_grad") for p in trained)
        gradients = UnreducedGradients(
            SimpleNamespace(monitor_mbs_grad=mbs), trained, self._micro_batches, main_grad, self._take_unreduced
        )
        gradients.guard = self._guard
        gradients.install(models, self._view)
        self._parts.append(gradients)
        self._counting.append(gradients)

    def _watch_communication(self) -> None:
        one = self._config.monitors["cc"]
        options = one.options.get("cc_distribution", one.options)
        board = SimpleNamespace(series=self._communication_row, put=self._files.put)
        config = SimpleNamespace(cc_distribution=options, ops=one.ops, eps=1e-8)
        self._communication = CommunicationWatch(config, board, self._values, self._guard)
        self._communication.install()
        self._parts.append(self._communication)
        self._watching.append(self._communication)

    def _communication_row(self, table: str, name: str, tag: str) -> int:
        call, _, side = name.partition(":")[2].rpartition(".")
        return self._files.number("cc", f"{call}/rank{self.rank}/{side}", "comm")

    # ---- a step

    def _take_unreduced(self, name: str, micro: int, gradient: Any, tag: str) -> None:
        if self._armed:
            part = micro + 1 if micro >= 0 else self._micro_batches
            number = self._files.number("weight_grad", name, "unreduced", part)
            self._guard(lambda: self._values.take([number], [gradient]))

    def _before_step(self) -> None:
        if self._armed:
            self._guard(self._take_before)

    def _take_before(self) -> None:
        numbers: list = []
        tensors: list = []
        with torch.no_grad():
            if self._modules is not None:
                self._modules.finish()
            self._view.refresh()
            for parameter, name in self._names.items() if "weight_grad" in self._config.monitors else ():
                gradient = self._view.gradient(name, parameter, True, False)
                if gradient is not None:
                    numbers.append(self._files.number("weight_grad", name, "reduced", self._micro_batches))
                    tensors.append(gradient)
            self._list_parameters("param_origin", numbers, tensors)
            self._values.take(numbers, tensors)

    def _list_parameters(self, scope: str, numbers: list, tensors: list) -> None:
        for parameter, name in self._names.items() if "param" in self._config.monitors else ():
            if parameter.numel():
                numbers.append(self._files.number("param", name, scope))
                tensors.append(parameter)

    def _after_step(self) -> None:
        if self._armed:
            self._guard(self._take_after)
        if self._by_optimizer:
            self._end_step()

    def _take_after(self) -> None:
        numbers: list = []
        tensors: list = []
        with torch.no_grad():
            self._list_parameters("param_updated", numbers, tensors)
            self._values.take(numbers, tensors)

    def _take_moments(self) -> None:
        numbers: list = []
        tensors: list = []
        states = self._view.states()
        for position, scope in enumerate(("exp_avg", "exp_avg_sq")):
            for parameter, name in self._names.items():
                moment = self._view.moments(parameter, states)[position]
                if moment is not None:
                    numbers.append(self._files.number("optimizer", f"{name}.{scope}", scope))
                    tensors.append(moment)
        self._values.take(numbers, tensors)

    def _collect(self) -> None:
        with torch.no_grad():
            if self._modules is not None:
                self._modules.finish()
            if "optimizer" in self._config.monitors:
                self._take_moments()
            self._values.flush()
            if self._communication is not None:
                self._communication.finish()


class V2Modules(ModuleWatch):
    """Inputs of modules when they begin, outputs when they end, gradients when they are there."""

    by_row = True

    def __init__(self, files: V2Files, values: Values, guard: Any) -> None:
        """Knows where values go."""
        config = SimpleNamespace(backward_only=False, forward_only=False)
        board = SimpleNamespace(expect=lambda *_: None, why=lambda *_: None, journal=files.journal)
        super().__init__(config, board, values, 1, guard)
        self._files = files
        self._has_many = False

    def _declare(self, site: int, gradient: bool, output: bool, place: int, turn: int, group: int) -> Optional[int]:
        if turn >= _MOST_CALLS:  # without a step that is seen they would have no end
            if not self._has_many:
                self._has_many = True
                logger.warning(
                    "monitor: of %s, called %d times without a step of the optimizer, further calls have no rows",
                    self._names[site],
                    turn,
                )
            return None
        word, scope = ("grad_", "backward") if gradient else ("", "forward")
        name = f"{self._names[site]}.{word}{'output' if output else 'input'}.{place}"
        return self._files.number_at("module", name, scope, turn)

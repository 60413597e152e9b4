"""TrainerMonitorV2 of PyTorch: the hooks of TrainerMon, with rows of their own form."""

from types import SimpleNamespace
from typing import Any, Optional

import torch
import torch.distributed as dist

from ..._capture.log import logger
from ..._monitor.config import whole_number
from ..._monitor.v2_config import V2Config
from ..._monitor.v2_files import V2Files
from .. import hooks
from .activations import ModuleWatch
from .communication import CommunicationWatch
from .faults import OURS
from .gradients import UnreducedGradients
from .optimizers import OptimizerView, view_of
from .step_hooks import StepHooks
from .values import Values

_NEED_OPTIMIZER = ("weight_grad", "optimizer", "param")


class MonitorV2:
    """One process of TrainerMonitorV2."""

    def __init__(self, config: V2Config) -> None:
        """Makes the output directory, if this rank is monitored.

        Args:
            config: What is wanted.

        Raises:
            ValueError: The directory cannot be written.
        """
        hooks.init()
        self._config = config
        initialized = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if initialized else 0
        self.current_step = 0
        self._collected = 0
        self._files: Optional[V2Files] = None
        if not config.ranks or self.rank in config.ranks:
            self._files = V2Files(config, self.rank)
            self._values = Values(self._files)
        self._parts: list = []  # what has remove()
        self._modules: Optional[V2Modules] = None
        self._gradients: Optional[UnreducedGradients] = None
        self._communication: Optional[CommunicationWatch] = None
        self._view: Optional[OptimizerView] = None
        self._names: dict = {}
        self._micro_batches = 1
        self._by_optimizer = False
        self._armed = False
        self._broken = self._warned = False

    def start(self, model: Any, optimizer: Any, **context: Any) -> None:
        """Hooks what the configuration asks for; see TrainerMonitorV2."""
        if self._files is None or self._parts:
            return
        kinds = self._config.monitors
        for kind in kinds:
            if kind != "cc" and model is None:
                raise ValueError(f"monitor {kind} needs the model: call start(model=model, optimizer=optimizer)")
            if kind in _NEED_OPTIMIZER and optimizer is None:
                raise ValueError(f"monitor {kind} needs the optimizer: call start(model=model, optimizer=optimizer)")
        several = isinstance(model, (list, tuple))
        chunks = [(f"{i}:" if several else "", m) for i, m in enumerate(model if several else [model]) if m is not None]
        self._names = {p: prefix + name for prefix, m in chunks for name, p in m.named_parameters()}
        self._micro_batches = self._passes(context)
        if optimizer is not None:
            self._view = view_of(optimizer)
            patched = self._config.patch_optimizer_step
            self._by_optimizer = patched is None or patched
            self._parts.append(StepHooks(self._view.optimizer, self._before_step, self._after_step))
        if "module" in kinds:
            self._watch_modules(chunks)
        if "weight_grad" in kinds:
            self._watch_gradients([m for _, m in chunks])
        if "cc" in kinds and dist.is_available() and dist.is_initialized():
            self._watch_communication()
        self._arm()

    def _passes(self, context: dict) -> int:
        options = self._config.monitors["weight_grad"].options if "weight_grad" in self._config.monitors else {}
        for source in (options, context):
            for name in ("micro_batch_number", "grad_acc_steps"):
                if source.get(name) is not None:
                    return whole_number(source[name], name, 1, 1)
        return 1

    def _watch_modules(self, chunks: list) -> None:
        targets = self._config.monitors["module"].targets
        self._modules = V2Modules(self._files, self._values, self._guard)
        self._parts.append(self._modules)
        for prefix, chunk in chunks:
            for name, module in chunk.named_modules():
                if not targets or any(target in prefix + name for target in targets):
                    self._modules.add(module, prefix + name)

    def _watch_gradients(self, models: list) -> None:
        mbs = bool(self._config.monitors["weight_grad"].options.get("monitor_mbs_grad", False))
        trained = {p: name for p, name in self._names.items() if p.requires_grad}
        main_grad = any(hasattr(p, "main_grad") for p in trained)
        self._gradients = UnreducedGradients(
            SimpleNamespace(monitor_mbs_grad=mbs), trained, self._micro_batches, main_grad, self._take_unreduced
        )
        self._gradients.guard = self._guard
        self._gradients.install(models, self._view)
        self._parts.append(self._gradients)

    def _watch_communication(self) -> None:
        one = self._config.monitors["cc"]
        options = one.options.get("cc_distribution", one.options)
        board = SimpleNamespace(series=self._communication_row, put=self._files.put)
        config = SimpleNamespace(cc_distribution=options, ops=one.ops, eps=1e-8)
        self._communication = CommunicationWatch(config, board, self._values, self._guard)
        self._communication.install()
        self._parts.append(self._communication)

    def _communication_row(self, table: str, name: str, tag: str) -> int:
        call, _, side = name.partition(":")[2].rpartition(".")
        return self._files.number("cc", f"{call}/rank{self.rank}/{side}", "comm")

    def _arm(self) -> None:
        due = self._config.is_monitored(self.current_step) and self._collected < self._config.collect_times
        self._armed = due and not self._broken
        for part in (self._modules, self._communication):
            if part is not None:
                part.armed = self._armed

    def _guard(self, what: Any) -> None:
        if self._broken:
            return
        try:
            what()
        except OURS as error:
            self._broken = True
            logger.error("monitor: it ends here, the training goes on: %s: %s", type(error).__name__, error)

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

    def step(self) -> None:
        """Ends a step, unless the optimizer does."""
        if self._by_optimizer and self._parts:
            if not self._warned:
                logger.warning("monitor: step() does nothing, because the optimizer's steps are the monitor's")
            self._warned = True
            return
        self._end_step()

    def _end_step(self) -> None:
        if self._files is None:
            return
        if self._armed:
            self._guard(self._write)
        elif not self._broken:
            self._files.drop()
        for part in (self._modules, self._gradients):
            if part is not None:
                part.next_step()
        self.current_step += 1
        self._arm()

    def _write(self) -> None:
        with torch.no_grad():
            if self._modules is not None:
                self._modules.finish()
            if "optimizer" in self._config.monitors:
                self._take_moments()
            if self._communication is not None:
                self._communication.finish()
            self._values.flush()
        self._files.write(self.current_step)
        self._collected += 1

    def stop(self) -> None:
        """Removes the hooks."""
        for part in self._parts:
            part.remove()
        self._parts.clear()
        self._armed = False


class V2Modules(ModuleWatch):
    """Inputs of modules when they begin, outputs when they end, gradients when they are there."""

    by_row = True

    def __init__(self, files: V2Files, values: Values, guard: Any) -> None:
        """Knows where values go."""
        config = SimpleNamespace(backward_only=False, forward_only=False)
        board = SimpleNamespace(expect=lambda *_: None, why=lambda *_: None, journal=files.journal)
        super().__init__(config, board, values, 1, guard)
        self._files = files

    def _declare(self, site: int, gradient: bool, output: bool, place: int, turn: int, group: int) -> int:
        word, scope = ("grad_", "backward") if gradient else ("", "forward")
        name = f"{self._names[site]}.{word}{'output' if output else 'input'}.{place}"
        return self._files.number_at("module", name, scope, turn)

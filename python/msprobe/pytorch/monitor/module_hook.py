"""TrainerMon: watches a whole training, as mindstudio-probe's class of this name does."""

import atexit
import json
import os
import weakref
from collections.abc import Callable
from typing import Any, Optional

import torch

from ..._capture.errors import MsprobeException
from ..._capture.guard import shielded
from ..._capture.log import logger
from ..._compat import distributed_module
from ..._monitor import config as configs
from ..._monitor import names, output
from ..._monitor.alarm_news import AlarmNews, FileNews
from ..._monitor.anomalies import AnomalyLog
from ..._monitor.board import Board
from ..._monitor.budget import Budget
from ..._monitor.dynamic import ConfigFile
from ..._monitor.live import LiveJudge
from ..._monitor.phases import Phases
from .. import recorder
from .activations import ModuleWatch
from .alarm_dump import AlarmDump
from .communication import CommunicationWatch
from .compiled import CompiledWatch
from .earlier_calls import EarlierCalls
from .faults import OURS
from .features import FeatureWatch
from .gradients import UnreducedGradients
from .group_news import GroupNews
from .health import TABLES as HEALTH_TABLES
from .health import HealthWatch
from .inputs import InputWatch
from .laws.of_monitor import MonitoredLaws
from .learning_rates import LearningRates
from .optimizers import OptimizerView, view_of
from .parameters import ParameterWatch
from .place import check_models, place_of
from .step_hooks import StepHooks
from .step_reader import StepReader
from .structure import StackWatch, StructureWatch
from .updates import Updates
from .values import Values

dist = distributed_module()


class TrainerMon(EarlierCalls, Phases, MonitoredLaws):
    """Writes statistics of gradients, optimizer states, parameters and activations of each monitored step.

    It never changes a number of the training and never stops it; what fails ends the monitor and is reported in the log.
    """

    def __init__(
        self, config_file_path: str, process_group: Any = None, params_have_main_grad: bool = True, opt_ty: Any = None
    ) -> None:
        """Reads the configuration and makes the output directory of this rank.

        Args:
            config_file_path: A JSON file; docs/en/monitor/config.md lists its keys.
            process_group: The pipeline's; its ranks are named in anomalies.
            params_have_main_grad: Whether gradients are in `main_grad` (Megatron-LM); a parameter that has none is read at
                `grad`.
            opt_ty: Ignored; earlier releases needed it.

        Raises:
            ValueError: The configuration cannot be read, a value is out of range, or the output cannot be written.
            TypeError: A value of the configuration has the wrong type.
        """
        recorder.init()
        self.config_file_path = config_file_path
        self.params_have_main_grad = params_have_main_grad
        self.config = configs.load_config(config_file_path)
        self.rank, self.pp_stage, self.group_mates = place_of(process_group)
        self.output_base_dir = output.base_directory()
        self.tensorboard_dir = self._new_directory()
        self.dynamic_enable = os.getenv("DYNAMIC_MONITOR", "False").lower() == "true"
        self.monitoring = False
        self.micro_batch_number = 1
        self.model: list = []
        self.tp_group = self.dp_group = None
        self.step_count = 0
        self._collected = 0
        self._config_file = ConfigFile(config_file_path)
        self._view: Optional[OptimizerView] = None
        self._steps: Optional[StepHooks] = None
        self._board: Optional[Board] = None
        self._judge: Optional[LiveJudge] = None
        self._alarm_dump: Optional[AlarmDump] = None
        self._callbacks: list = []
        self._compiled: Optional[CompiledWatch] = None
        self._broken = False
        self._clear()
        if self.dynamic_enable:
            logger.warning(
                "monitor: DYNAMIC_MONITOR is set: nothing is monitored until %s has dynamic_on true", config_file_path
            )
        else:
            self._open_board()

    def _clear(self) -> None:
        self._gradients: Optional[UnreducedGradients] = None
        self._budget: Optional[Budget] = None
        self._inputs: Optional[InputWatch] = None
        self._modules: Optional[ModuleWatch] = None
        self._features: Optional[FeatureWatch] = None
        self._health: Optional[HealthWatch] = None
        self._communication: Optional[CommunicationWatch] = None
        self._structure: Optional[StructureWatch] = None
        self._stacks: Optional[StackWatch] = None
        self._parameters: Optional[ParameterWatch] = None
        self._reader: Optional[StepReader] = None
        self._armed = False

    # ---- where it writes

    @property
    def _is_monitored_rank(self) -> bool:
        return not self.config.module_ranks or self.rank in self.config.module_ranks

    def _open_board(self) -> None:
        if not self._is_monitored_rank:
            return
        if self._board is not None:
            self._end_laws()
            self._board.end()
        anomalies = None
        if self.config.alert_dump or self.config.laws.on:
            try:
                where = (self.output_base_dir, self.rank, self.pp_stage, self.group_mates)
                anomalies = AnomalyLog(*where, self.config.alert_dump)
            except OSError as error:
                raise ValueError(f"anomalies cannot be written: {error}") from None
        self._board = Board(self.tensorboard_dir, self.config, self.rank, anomalies if self.config.alert_dump else None)
        self._open_laws(anomalies)
        self._values = Values(self._board)
        self._judge = self._new_judge(self.tensorboard_dir, anomalies)
        if self._judge is not None:
            self._judge.news = self._alarm_news()
        atexit.register(shielded(_end_at_exit), weakref.ref(self))

    def _alarm_news(self) -> Optional[AlarmNews]:
        way = self.config.actions.ranks
        if way == "file":
            return FileNews(self.output_base_dir, self.rank)
        if way == "group" and dist.is_initialized() and dist.get_world_size() > 1:
            return GroupNews()
        return None

    # ---- what scripts call

    def set_monitor(
        self,
        model: Any,
        optimizer: Any,
        grad_acc_steps: int = 1,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """Hooks the model and its optimizer; call it after both have been wrapped for parallel training.

        Args:
            model: A module, or the list of a pipeline's chunks.
            optimizer: That trains it.
            grad_acc_steps: Backward passes of an optimizer step.
            tp_group: Ranks of tensor parallelism; of parameters that all of them hold, the first rank's are written.
            dp_group: Ranks of data parallelism; gradients after the reduction are written by the first.
            start_iteration: The number of the first step.

        Raises:
            TypeError: The optimizer is one that cannot be read.
            ValueError: The model has no parameter that is trained, or FSDP was used without use_orig_params.
        """
        self.micro_batch_number = configs.whole_number(grad_acc_steps, "grad_acc_steps", 1, 1)
        self.step_count = configs.whole_number(start_iteration, "start_iteration", 0, 0)
        if self._steps is not None:
            logger.warning("monitor: set_monitor() was called before: the first model is monitored no more")
            self._remove_hooks()
            self._steps.remove()
        self.model = list(model) if isinstance(model, (list, tuple)) else [model]
        self.tp_group, self.dp_group = tp_group, dp_group
        self._view = view_of(optimizer)
        check_models(self.model)
        if not any(hasattr(p, "main_grad") for model in self.model for p in model.parameters()):
            self.params_have_main_grad = False
        self._steps = StepHooks(self._view.optimizer, self._before_step, self._after_step)
        if not self.dynamic_enable:
            self._start()

    def generate_wgrad_metrics(self, post_grad_dict: Any = None) -> tuple:
        """Returns the statistics of gradients of the open step, for format "api".

        Args:
            post_grad_dict: Ignored; mindstudio-probe passes gradients through here.

        Returns:
            (after the reduction, before it), each tag -> {statistic: value}.
        """
        if self._board is None or not self.config.wg_distribution:
            return {}, {}
        if self._armed and self._view is not None:
            self._guard(self._parameters.take_gradients)
        return self._board.rows("grad_reduced"), self._board.rows("grad_unreduced")

    def generate_xy_metrics(self) -> tuple:
        """Returns the statistics of inputs and outputs of modules of the open step, for format "api".

        Returns:
            (activations, their gradients), each tag -> {statistic: value}.
        """
        if self._board is None:
            return {}, {}
        return self._board.rows("actv"), self._board.rows("actv_grad")

    def record_loss(self, loss: Any) -> None:
        """Gives the loss of a micro step, with "input_distribution", "loss" or "laws".

        It is taken instead of what the model returns and of what backward() is called on. The laws need it before its
        backward pass.

        Args:
            loss: A tensor of one element, which is fetched at the end of the step, or a number.
        """
        if self._inputs is not None and self._armed:
            self._guard(lambda: self._inputs.loss(loss))
        if self._laws is not None:
            self._guard(lambda: self._laws.loss(loss))

    # ---- beginning and end of the hooks

    def _start(self) -> None:
        self._armed = False
        if self._board is None or self.config.collect_times <= 0:
            return
        self.monitoring = True
        self._collected = 0
        self._budget = self._new_budget()
        self._board.forget_expectations()
        config = self.config
        self._parameters = ParameterWatch(
            config, self._board, self._values, self._view, self.params_have_main_grad, self._is_duplicate
        )
        self._parameters.add(self.model)
        if config.wg_distribution and not config.print_struct:
            self._gradients = UnreducedGradients(
                config,
                self._parameters.names,
                self.micro_batch_number,
                self.params_have_main_grad,
                self._take_unreduced,
            )
            self._gradients.guard = self._guard
            self._gradients.native = lambda name, passes: self._parameters.gradient_hook(
                name, passes, self._take_unreduced
            )
            self._gradients.install(self.model, self._view)
        updates = Updates(self._board, self._values, config.ops) if config.ur_distribution else None
        rates = LearningRates(self._board, self._values, self._view) if config.learning_rate else None
        self._reader = StepReader(self._view, self._parameters, updates, self._values, self._guard, rates)
        if (config.input_distribution or config.loss) and not config.print_struct:
            self._inputs = InputWatch(
                self._board, self._values, self.micro_batch_number, self._guard, config.input_distribution
            )
            for chunk, model in enumerate(self.model):
                self._inputs.add(model, f"{chunk}:")
        self._watch_modules()
        if config.cc_distribution.get("enable", False):
            self._communication = CommunicationWatch(config, self._board, self._values, self._guard)
            self._communication.install()
        if self._judge is not None and config.actions.dump_steps:
            self._alarm_dump = AlarmDump(self.model, self.tensorboard_dir, config.actions.dump_config)
            self._judge.dump = self._alarm_dump.begin
        self._start_laws()
        self._watch_compiled()
        self._arm()

    def _watch_compiled(self) -> None:
        if self._compiled is None:
            self._compiled = CompiledWatch()
        self._compiled.tell(self._board.compiled)
        if self._book is not None:
            self._compiled.tell(self._book.compiled)

    def _watch_modules(self) -> None:
        config, board = self.config, self._board
        targets = names.targets_of_chunks(config, len(self.model))
        found: set = set()
        taken: set = set()
        if config.print_struct:
            self._structure = StructureWatch(os.path.join(self.output_base_dir, "module_struct", f"rank{self.rank}"))
        if config.xy_distribution and not config.print_struct:
            self._modules = ModuleWatch(config, board, self._values, self.micro_batch_number, self._guard)
        if config.stack_info:
            self._stacks = StackWatch(self.tensorboard_dir)
        features = config.recording_l2_features and not config.print_struct
        self._features = (
            FeatureWatch(config, board, self._values, self.micro_batch_number, self._guard) if features else None
        )
        if config.health and not config.print_struct:
            self._health = HealthWatch(config, board, self._values, self.micro_batch_number, self._guard)
        count = 0
        for chunk, model in enumerate(self.model):
            prefix = f"{chunk}:"
            if self._health is not None:
                self._health.add(model, prefix)
            for path, module in model.named_modules():
                if self._stacks is not None:
                    self._stacks.add(module, prefix + names.squash(path, config.squash_name))
                if self._features is not None:
                    self._features.add(module, path, prefix)
                name = names.target_module_name(config, targets, path, prefix)
                if not name or type(module).__name__ == "FullyShardedDataParallel" or not _runs(module):
                    continue
                found.add(name)
                if name in taken:  # two modules are one when what is before "layers", "norm" ... is cut off
                    name = prefix + path
                taken.add(name)
                if self._modules is not None:
                    self._modules.add(module, name)
                    count += 1
                elif self._structure is not None:
                    self._structure.add(module, name)
        if self._modules is not None and not config.all_xy:
            for target in targets:
                if target not in found:
                    board.expect("actv", target)
                    board.why("actv", target, "the model has no module of this name")
        if count:
            logger.info("monitor: %d modules are monitored", count)

    def _is_duplicate(self, parameter: Any) -> bool:
        if self.tp_group is not None and not getattr(parameter, "tensor_model_parallel", False):
            if dist.get_rank(group=self.tp_group) != 0:
                return True
        return self.dp_group is not None and dist.get_rank(group=self.dp_group) != 0

    def _remove_hooks(self) -> None:
        self._remove_laws()
        if self._compiled is not None:
            self._compiled.remove()
            self._compiled = None
        for part in (
            self._gradients,
            self._inputs,
            self._modules,
            self._features,
            self._health,
            self._communication,
            self._structure,
            self._stacks,
            self._reader,
        ):
            if part is not None:
                part.remove()
        self._clear()
        self.monitoring = False
        if self._board is not None:
            self._board.arm(False)
            self._board.drop()
            self._values.forget()

    def _arm(self) -> None:
        """Whether the hooks of the coming step do something."""
        self._armed = self.monitoring and self.config.is_monitored(self.step_count)
        if self._armed and self._budget is not None:
            self._armed = self._budget.wants()
        for part in (self._inputs, self._modules, self._features, self._communication):
            if part is not None:
                part.armed = self._armed
        if self._health is not None:
            self._health.armed = self._armed and self._collected % self.config.health_every == 0
        if self._board is not None:
            self._board.arm(self._armed)

    def _guard(self, what: Callable[..., None], *arguments: Any) -> None:
        if self._broken:
            return
        try:
            what(*arguments)
        except OURS as error:
            self._broken = True
            logger.error("monitor: it ends here, the training goes on: %s: %s", type(error).__name__, error)
            self._fail()

    def _fail(self) -> None:
        try:
            self._remove_hooks()
            if self._board is not None:
                self._end_laws()
                self._board.end("failed")
        except OURS as error:
            logger.error("monitor: its hooks could not be removed: %s", error)

    # ---- a step

    def _before_step(self) -> None:
        if self._broken or not self.monitoring:
            return
        if self._reader is not None:
            self._reader.remove()  # what a step left that failed
        self._laws_before_step()
        only_logs = self.config.cc_distribution.get("cc_log_only", False)
        if self._structure is not None and self._structure.is_known:
            self._guard(self._structure.write)
            if not only_logs:
                raise MsprobeException(
                    MsprobeException.CAPTURE_ERROR, "exit after first monitor step when print model struct"
                )
        if self._communication is not None and only_logs and self.step_count > 0:
            logger.info(
                "monitor: communications and where they are called: %s", json.dumps(self._communication.stacks())
            )
            raise MsprobeException(MsprobeException.CAPTURE_ERROR, "exit after first step when print cc stack")
        if self._armed and not self.config.print_struct:
            self._guard(self._take_before)

    def _take_before(self) -> None:
        with torch.no_grad():
            if self._modules is not None:
                self._modules.finish()
            if self._health is not None:
                self._health.finish()
            self._reader.before(self.step_count)

    def _leave_out_modules(self) -> None:
        for part in (self._modules, self._features, self._health):
            if part is not None:
                part.remove()
        self._modules = self._features = self._health = None
        self._board.leave_out(("actv", "actv_grad", *configs.FEATURE_HOOKS, *HEALTH_TABLES))

    def _take_unreduced(self, name: str, micro: int, gradient: Any, tag: str) -> None:
        if self._armed:
            self._guard(lambda: self._parameters.take_unreduced(name, micro, gradient, tag))

    def _after_step(self) -> None:
        if self._broken:
            return
        if self._alarm_dump is not None:
            self._guard(self._alarm_dump.next_step)
        if self.monitoring and self._armed and not self.config.print_struct:
            self._guard(self._finish_step)
        if self._budget is not None and self._budget.ended(self._armed, self._board.written):
            self._leave_out_modules()
        self._laws_after_step()
        if self._judge is not None:
            self._judge.tell()
        if self._gradients is not None:
            self._gradients.next_step()
        if self._board is not None:
            self._board.next_step()
        for part in (self._inputs, self._modules, self._health):
            if part is not None:
                part.next_step()
        self.step_count += 1
        self._guard(self._reload)
        self._arm()

    def _finish_step(self) -> None:
        with torch.no_grad():
            self._reader.after()
        self._values.flush()
        if self._communication is not None:
            self._communication.finish()
        if self._gradients is not None:
            self._gradients.explain(self._board)
        if self._stacks is not None:
            self._stacks.write()
            self._stacks = None
        self._board.write(self.step_count)
        if self._judge is not None:
            self._judge.step(self.step_count)
        self._count_step()

    def close(self) -> None:
        """Removes all hooks, writes the last heartbeat and says what the run had; done when the process ends, too."""
        if self._steps is not None:
            self._remove_hooks()
            self._steps.remove()
            self._steps = None
        if self._board is not None:
            self._end_laws()
            self._board.end()


def _runs(module: torch.nn.Module) -> bool:
    """Lists of modules have no forward of their own."""
    return type(module).forward is not torch.nn.Module.forward


def _end_at_exit(monitor: Any) -> None:
    alive = monitor()
    if alive is not None and alive._board is not None:
        alive._end_laws()
        alive._board.end()

"""PrecisionDebugger: when something is recorded, and where it goes. What is recorded, and how, is in msprobe._core."""

import atexit
import functools
import os
import threading
import weakref
from typing import Any, Optional

import torch

from .. import _core
from . import dataloader, hooks, slices, tasks
from .arguments import check_model, check_start, fifth_argument, is_index, rank_of_process, refuse
from .budget import Budget
from .config import Config, MsprobeException, load_config
from .grad_probe import GradProbe
from .load_inputs import InputLoader
from .log import logger
from .recording import Recording
from .reload import ConfigWatch
from .save import Saver
from .seed import seed_all
from .step_report import StepReporter

_SUPPORTED = {
    "task": ("statistics", "tensor", "structure", "overflow_check", "diff_check", "exception_dump", "grad_probe"),
    "level": ("L0", "L1", "mix", "debug"),
    "summary_mode": ("statistics", "md5", "xor"),
}


def _locked(method: Any) -> Any:
    @functools.wraps(method)
    def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with PrecisionDebugger._lock:
            return method(cls, *args, **kwargs)

    return call


def _without_memory(method: Any) -> Any:
    """The training goes on without a record where there is no memory for one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except MemoryError:
            self._lose_step(method.__name__.strip("_"))

    return call


class PrecisionDebugger:
    """Records what the training script computes between start() and stop(); step() begins the next step's directory.

    One object per process: later constructions return the first. The methods work on the class, too.
    """

    _instance: Optional["PrecisionDebugger"] = None
    _lock = threading.RLock()
    _seeded = False  # by whoever attached us, before the model was made
    _on_second: Any = None  # told when the script constructs one beside the attached one
    _name_unranked: Any = staticmethod(lambda dump_path: "rank")  # the directory of a process without a rank

    def __new__(cls, *args: Any, **kwargs: Any) -> "PrecisionDebugger":
        if cls._instance is None:
            instance = super().__new__(cls)
            instance._ready = False
            return instance
        return cls._instance

    def __init__(self, config_path=None, task=None, dump_path=None, level=None, *args, model=None, step=None):
        if self._ready:
            if PrecisionDebugger._on_second is not None:
                PrecisionDebugger._on_second()
            return
        model, step = fifth_argument(args, model, step)
        overrides = {"task": task, "dump_path": dump_path, "level": level, "step": step}
        config = load_config(config_path, **overrides)
        _check_supported(config)
        if config_path is None:
            logger.info("no config_path is given: %s is used.", config.config_path)
        for warning in config.warnings:
            logger.warning(warning)
        if model is not None:
            check_model(model)
        self.config: Config = config
        self._model = model
        self._hooked: list[tuple] = []  # weak references to the models of each start()
        self._loop = 0
        self._init_step = 0
        self._first_start = True
        self._rank: Optional[int] = None
        self._ended = False
        self._active = False  # between an effective start() and step()
        self._directory = ""
        self._pid = os.getpid()
        self._phases_hooked = False
        self._tokens_counted = False
        self._warned_about_dataloader = False
        self._watch = ConfigWatch(config, overrides) if config.dump_enable is not None else None
        self._changed: Optional[Config] = None  # waits for the end of the step
        self._loader = InputLoader(config.load) if config.load is not None else None
        self._saver = Saver()
        self._budget = Budget(config) if config.budget else None
        self._grad_probe = GradProbe(config) if config.task == "grad_probe" else None
        self._reporter = StepReporter()
        if config.seed is not None and not PrecisionDebugger._seeded:
            seed_all(config.seed, config.is_deterministic)
        hooks.set_up(config)
        self._forget_dataloader = self._follow_dataloader() if config.enable_dataloader else None
        atexit.register(self._at_exit)
        self._ready = True
        PrecisionDebugger._instance = self

    # ---- the interface --------------------------------------------------------------------------------------------------

    @classmethod
    @_locked
    def start(cls, model=None, token_range=None, rank_id=None, scheduled_tokens=None):
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("start"):
            self._start(model, token_range, rank_id, scheduled_tokens)

    @classmethod
    @_locked
    def stop(cls):
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("stop"):
            self._stop()

    @classmethod
    @_locked
    def step(cls):
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("step"):
            self._step()

    @classmethod
    def record(cls, model=None, step=True, **options):
        """`with PrecisionDebugger.record(model):` is start(model, **options) before the block, and stop() and step() after it,
        also when the block is left by an exception, return or break. step=False: without step(), for micro batches."""
        return Recording(cls, model, step, options)

    @classmethod
    @_locked
    def forward_backward_dump_end(cls):
        """Ends the recording in the middle of a step, as stop() does."""
        self = cls._get()
        if not self._is_child():
            self._stop()

    @classmethod
    @_locked
    def set_init_step(cls, step):
        self = cls._get()
        if not is_index(step):
            refuse(f"step is {step!r}; allowed: an integer from 0 (set_init_step)")
        self._init_step, self._loop = step, 0

    @classmethod
    @_locked
    def save(cls, variable, name, save_backward=True):
        """Level debug: writes a value, and the gradients of the tensors in it, into debug.json of this step."""
        self = cls._get()
        if not isinstance(name, str) or not isinstance(save_backward, bool):
            refuse(f"name is {name!r}, save_backward is {save_backward!r}; allowed: text, and True or False (save)")
        if self._is_child() or self._ended or self.config.level != "debug" or not self._is_enabled():
            return
        if self._is_wanted_step() and (self._active or self._begin_saving()):
            try:
                self._saver.save(variable, name, save_backward)
            except MemoryError:
                self._reporter.warn_once("save", "there was not enough memory to save %s.", name)

    @classmethod
    @_locked
    def monitor(cls, model):
        """Task grad_probe: lists the gradients of this model's parameters at each optimizer step."""
        self = cls._get()
        check_model(model)
        if self._grad_probe is not None and not self._is_child():
            self._grad_probe.monitor(model)

    @classmethod
    @_locked
    def register_custom_api(cls, module, api, api_prefix=None):
        cls._get()
        why = hooks.add_custom(module, api, api_prefix)
        if why:
            refuse(f"{api} cannot be recorded: {why}")

    @classmethod
    @_locked
    def restore_custom_api(cls, module, api):
        """Ends what register_custom_api began."""
        cls._get()
        hooks.remove_custom(module, api)

    # ---- one step -------------------------------------------------------------------------------------------------------

    @_without_memory
    def _start(self, model: Any, token_range: Any, rank_id: Any, scheduled_tokens: Any = None) -> None:
        if self._watch is not None:
            self._take_changes(at_start=True)
        if self._ended or self.config.level == "debug" or self._grad_probe is not None or not self._is_enabled():
            return
        check_start(token_range, rank_id)
        hooks.add_new_ops(self.config)
        self._take_model(model, token_range)
        if self._is_past_last_step():
            self._end_service()
            return
        if self._budget is not None:
            self._budget.begin(self._current_step)
        if not self._is_wanted_step() or not (self._active or self._is_within_budget()):
            _core.pause()
            return
        if not slices.choose_request(self.config, scheduled_tokens):
            _core.pause()
            return
        if self._first_start or self._rank is None:
            self._rank = rank_id if rank_id is not None else rank_of_process()
        if self.config.rank and self._rank not in self.config.rank:
            self._first_start = False
            return
        if self._begin():
            self._first_start = False
            if self._budget is not None:
                self._budget.limit()
            if token_range is not None and not self._tokens_counted:
                self._tokens_counted = True
                hooks.count_tokens(self._model, token_range)

    @_without_memory
    def _stop(self) -> None:
        if self._loader is not None:
            self._loader.end()
        if self._active and not self._ended and self.config.level != "debug":
            self._report(hooks.stop_recording())
            if _core.exhausted():
                self._end_service()
                return
            self._info(
                "msprobe: debugger.stop() is set successfully. "
                "Please set debugger.start() to turn on the dump switch again."
            )
            self._info(f"dump.json is at {self._directory}.")
        if self._watch is not None:
            self._take_changes(at_start=False)

    @_without_memory
    def _step(self) -> None:
        if self._ended:
            return
        try:
            if self._loader is not None:
                self._loader.end_step()
            self._close_step()
        finally:
            self._loop += 1
        if self._watch is not None:
            self._take_changes(at_start=False)

    # ---- what they are made of ------------------------------------------------------------------------------------------

    @classmethod
    def _get(cls) -> "PrecisionDebugger":
        if cls._instance is None:
            raise Exception("PrecisionDebugger instance is not created.")
        return cls._instance

    def _is_child(self) -> bool:
        return os.getpid() != self._pid

    def _is_enabled(self) -> bool:
        return self._watch is None or self._watch.enabled

    @property
    def _current_step(self) -> int:
        return self._loop + self._init_step

    def _is_wanted_step(self) -> bool:
        return not self.config.step or self._current_step in self.config.step

    def _is_past_last_step(self) -> bool:
        return bool(self.config.step) and self._current_step > max(self.config.step)

    @property
    def _model(self) -> Any:
        """That of the last start(), or of the constructor; not kept alive."""
        models = [model() for model in self._model_references]
        if not models or any(model is None for model in models):
            return None
        return models if self._several_models else models[0]

    @_model.setter
    def _model(self, model: Any) -> None:
        self._several_models = isinstance(model, (list, tuple))
        models = model if self._several_models else [] if model is None else [model]
        # What is no module is refused later, and named then.
        self._model_references = [
            weakref.ref(m) if isinstance(m, torch.nn.Module) else functools.partial(_same, m) for m in models
        ]

    def _take_model(self, model: Any, token_range: Any) -> None:
        if model is not None:
            self._model = model
        if self.config.level == "L1" and token_range is None and self._loader is None:
            return
        if self._model is None:
            refuse(
                f"level {self.config.level} needs the model: call start(model=...) or PrecisionDebugger(model=...)"
                if self.config.level != "L1"
                else "token_range and load need the model: call start(model=...) or PrecisionDebugger(model=...)"
            )
        check_model(self._model)
        models = tuple(self._model) if isinstance(self._model, (list, tuple)) else (self._model,)
        if any(_same_models(known, models) for known in self._hooked):
            return
        if self._loader is not None:
            self._loader.add_modules(hooks.named_modules(self._model))
        self._hooked = [known for known in self._hooked if all(model() is not None for model in known)]
        self._hooked.append(tuple(weakref.ref(model) for model in models))

    def _begin(self) -> bool:
        if self._loader is not None and self._loader.begin(self._current_step, self._rank):
            self._info(f"Module inputs are replaced by those of {self.config.load.path}.")
        if self.config.only_loads:
            return False
        if self.config.level in ("L0", "mix"):
            hooks.add_model(self._model)  # each time, for modules may have been exchanged
        if self.config.level == "mix" and not self._phases_hooked:
            hooks.mark_phases()
            self._phases_hooked = True
        if not self._open():
            return False
        self._info("msprobe: debugger.start() is set successfully")
        self._info(f"Dump switch is turned on at step {self._current_step}.")
        self._info(f"Dump data will be saved in {os.path.dirname(self._directory)}.")
        return True

    def _is_within_budget(self) -> bool:
        if self._budget is None:
            return True
        config = self._budget.choose(self._current_step, self._model)
        if config is not None:
            self._apply(config, by_budget=True)
        return config is not None

    def _begin_saving(self) -> bool:
        self._rank = rank_of_process()
        return self._open()

    def _open(self) -> bool:
        name = (
            f"rank{self._rank}" if self._rank is not None else PrecisionDebugger._name_unranked(self.config.dump_path)
        )
        directory = os.path.join(self.config.dump_path, f"step{self._current_step}", name)
        if self._first_start and not self._active and os.path.isfile(os.path.join(directory, "dump.json")):
            logger.warning("dump_path holds an earlier dump, steps recorded now replace its steps: %s", directory)
        try:
            _core.start(directory, self.config.task, self.config.level)
        except ValueError as error:  # no permission, disk full: the training goes on without us
            self._reporter.warn_once("nothing", "nothing is recorded in step %d: %s", self._current_step, error)
            return False
        if self.config.level == "mix":
            hooks.mark_optimizers()
        self._directory, self._active = directory, True
        tasks.begin_step(self.config, self._current_step, self._rank)
        return True

    def _close_step(self) -> None:
        if not self._active:
            return
        self._active = False
        self._saver.end_step()
        if self._budget is not None and self._budget.leaves_out:
            _core.note_skip(self._budget.leaves_out, f"in step {self._current_step}")
        self._report(_core.end_step())
        summary = _core.take_summary()
        if self._budget is not None:
            self._budget.account(self._directory)
        what = "values" if self.config.level == "debug" else "ops"
        talks = self._rank in (None, 0)
        self._reporter.at_end_of_step(self._current_step, self._directory, summary, what, talks)
        tasks.end_step(self.config, self._directory, summary["recorded"])

    def _lose_step(self, method: str) -> None:
        for end in (hooks.stop_recording, self._close_step):  # the state is that of a step that is over
            try:
                end()
            except MemoryError:
                pass
        text = "step %d: there was not enough memory for %s() of the debugger, so the record of the step is not whole."
        self._reporter.warn_once("memory", text, self._current_step, method)

    def _end_service(self) -> None:
        self._close_step()
        hooks.stop_recording()
        self._ended = True
        if self._forget_dataloader is not None:
            self._forget_dataloader()
        line = "*" * 50
        self._info(line)
        self._info("*" + "msprobe ends successfully.".center(48) + "*")
        self._info(line)
        if self.config.exits_after_range and self._is_past_last_step():
            raise Exception(f"msprobe: exit after iteration {max(self.config.step)}")

    @_without_memory
    def _at_exit(self) -> None:
        if not self._is_child():
            hooks.stop_recording()
            self._close_step()
            self._ended = True

    def _report(self, error: str) -> None:
        if error:
            self._reporter.warn_once("incomplete", "the dump of step %d is incomplete: %s", self._current_step, error)

    def _info(self, text: str) -> None:
        if self._rank in (None, 0):
            logger.info(text)

    # ---- hot reload -----------------------------------------------------------------------------------------------------

    def _take_changes(self, at_start: bool) -> None:
        """The switch counts at once; other changes at the next start(), or when a step is over."""
        was_enabled = self._watch.enabled
        config = self._watch.poll()
        if config is not None:
            try:
                _check_supported(config)
                self._changed = config
            except MsprobeException as error:
                self._watch.disable(str(error))
        if was_enabled and not self._watch.enabled and self._active:
            self._report(hooks.stop_recording())
        if self._changed is not None and (at_start or not self._active):
            self._apply(self._changed)

    def _apply(self, config: Config, by_budget: bool = False) -> None:
        if not by_budget:
            self._changed = None
            self._budget = Budget(config) if config.budget else None
        same = all(getattr(self.config, name) == getattr(config, name) for name in _RELOADED)
        self.config.dump_enable = config.dump_enable
        if same:
            return
        if self._active:
            logger.warning("the configuration changed within step %d, whose dump begins anew.", self._current_step)
            self._close_step()
        for warning in config.warnings:
            logger.warning(warning)
        self.config, self._ended, self._first_start = config, False, True
        self._hooked = []  # hooks.add_model() knows which modules it has
        hooks.set_up(config)
        if not by_budget:
            self._info("the configuration has changed and is in use from now on.")

    # ---- enable_dataloader ----------------------------------------------------------------------------------------------

    def _leave_to_dataloader(self, method: str) -> bool:
        if self._forget_dataloader is None or self._ended:
            return False
        if not self._warned_about_dataloader:
            self._warned_about_dataloader = True
            logger.warning(
                "enable_dataloader is true: batches begin and end the steps, and %s() has no effect.", method
            )
        return True

    def _follow_dataloader(self) -> Any:
        begun = False  # a batch is there; none is between the last of an epoch and the first of the next

        def before() -> None:
            nonlocal begun
            if begun and not self._is_child():
                begun = False
                with PrecisionDebugger._lock:
                    self._stop()
                    self._step()

        def after() -> None:
            nonlocal begun
            if not self._is_child():
                begun = True
                with PrecisionDebugger._lock:
                    self._start(None, None, None)

        return dataloader.follow(before, after)


_RELOADED = (
    "task level dump_path rank step extra_info risk_level scope list_ data_mode summary_mode tensor_list slice_ request_id "
    "custom_op_namespaces async_dump precision section"
).split()


def _same_models(known: tuple, models: tuple) -> bool:
    return len(known) == len(models) and all(reference() is model for reference, model in zip(known, models))


def module_dump(module: torch.nn.Module, dump_name: str) -> None:
    """Records the calls of one module as Module.{dump_name}.{Class}, and no functions, until module_dump_end()."""
    PrecisionDebugger._get()
    if not isinstance(module, torch.nn.Module):
        refuse(f"module is a {type(module).__name__}; allowed: torch.nn.Module (module_dump)")
    if not isinstance(dump_name, str):
        refuse("dump_name must be text (module_dump)")
    hooks.begin_module_dump(module, dump_name)


def module_dump_end() -> None:
    PrecisionDebugger._get()
    hooks.end_module_dump()


def _same(value: Any) -> Any:
    return value


def _check_supported(config: Config) -> None:
    tasks.check(config)
    for name, allowed in _SUPPORTED.items():
        value = getattr(config, name)
        if value not in allowed and not (name == "task" and tasks.decides(config)):
            refuse(f"{name} '{value}' is not recorded by this release; use one of {', '.join(allowed)}")

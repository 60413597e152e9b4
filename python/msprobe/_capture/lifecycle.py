"""Where a capture stands: what start(), stop() and step() of PrecisionDebugger do, and what changes of the configuration do."""

import atexit
import functools
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable, Optional, TypeVar, cast

from .. import _core
from . import slices, tasks
from .arguments import check_start
from .batch_rows import BatchRows
from .config import Config, MsprobeException, with_value
from .config.keys import NEVER, NEXT_START, OF_EACH_START
from .features import Features
from .framework import Framework
from .guard import shielded
from .log import logger
from .models import Models
from .reload import ConfigWatch, changed_keys
from .schedule import Schedule

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Lets one thread at a time in."""

    @functools.wraps(method)
    def call(this: Any, *args: Any, **kwargs: Any) -> Any:
        with Lifecycle._lock:
            return method(this, *args, **kwargs)

    return cast(Method, call)


def _without_memory(method: Method) -> Method:
    """Lets the training continue without a record if there is not enough memory for one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except MemoryError:
            self._lose_step(method.__name__.strip("_"))

    return cast(Method, call)


class Lifecycle:
    """The state behind PrecisionDebugger, whose public methods check their arguments and then call these."""

    _config: Config

    _framework: Framework
    _lock = threading.RLock()
    _seeded = False  # by whoever attached us, before the model was made
    _name_unranked: Any = staticmethod(lambda dump_path: "rank")  # the directory of a process without a rank

    def _set_up(self, config: Config, overrides: Mapping[str, Any], model: Any) -> None:
        """Called once, at construction. `overrides` also win over a reloaded file."""
        self._config = config
        self._models = Models(self._framework, model)
        self._schedule = Schedule(config)
        self._features = Features(config, self._framework)
        self._batch = BatchRows(self._framework)
        self._first_start = True
        self._rank: Optional[int] = None
        self._ended = False
        self._active = False  # between an effective start() and step()
        self._by_runtime = False  # that step is dumped by the runtime of the device
        self._directory = ""
        self._pid = os.getpid()
        self._phases_hooked = False
        self._tokens_counted = False
        self._warned_about_dataloader = False
        self._watch = ConfigWatch(config, overrides) if config.dump_enable is not None else None
        self._changed: Optional[Config] = None  # waits for the next start()
        if config.seed is not None and not self._seeded:
            self._framework.seed(config)
        self._prepare(config)
        follows = config.enable_dataloader
        self._forget_dataloader = (
            self._framework.follow_batches(self._begin_batch, self._end_batch) if follows else None
        )
        atexit.register(shielded(self._at_exit))

    def _prepare(self, config: Config) -> None:
        self._framework.init()
        _core.configure(
            level=config.level,
            structure=config.task == "structure",
            summary=config.summary_mode,
            extra_info=config.extra_info,
            data_mode=list(config.data_mode),
            scope=list(config.scope),
            list=list(config.list_),
            risk_level=config.risk_level,
        )
        if tasks.decides(config):
            _core.configure_saving("deferred", [])
        else:
            _core.configure_saving("now" if config.task == "tensor" else "no", list(config.tensor_list))
        tasks.set_up(config, self._framework)
        slices.set_rules(list(config.slice_))
        self._framework.set_up(config)

    # ---- one step -------------------------------------------------------------------------------------------------------

    @_without_memory
    def _start(
        self, model: Any, token_range: Any, rank_id: Any, scheduled_tokens: Any = None, rows: Any = None
    ) -> None:
        self._schedule.begun = self._schedule.step
        self._take_changes(at_start=True)
        if (
            self._ended
            or not self._framework.records(self._config)
            or self._config.task == "grad_probe"
            or not self._is_enabled()
        ):
            return
        check_start(token_range, rank_id)
        self._framework.add_new_ops(self._config)
        self._models.take(model, self._config, token_range, self._features.loader)
        if self._schedule.is_past_last():
            self._end_service()
            return
        if self._features.budget is not None:
            self._features.budget.begin(self._schedule.step)
        if not self._schedule.wants_step() or not (self._active or self._is_within_budget()):
            _core.pause()
            return
        if not self._active:
            self._batch.begin_step()
        if not self._batch.choose(self._config, scheduled_tokens, rows):
            _core.pause()
            return
        if self._first_start or self._rank is None:
            self._rank = rank_id if rank_id is not None else self._framework.rank_of_process()
        if not self._schedule.wants_rank(self._rank):
            self._first_start = False
            return
        online = self._features.online
        if online is not None and not self._active and not online.begin(self._rank):
            _core.pause()
            return
        if self._begin():
            self._first_start = False
            self._batch.begin(self._config, self._models.current)
            if self._features.budget is not None:
                self._features.budget.limit()
            elif online is not None:
                online.limit()
            if token_range is not None and not self._tokens_counted:
                self._tokens_counted = True
                self._framework.count_tokens(self._models.current, token_range)

    @_without_memory
    def _stop(self) -> None:
        if self._features.loader is not None:
            self._features.loader.end()
        self._batch.end()
        if self._active and not self._ended and self._config.level != "debug":
            self._report(self._framework.stop_recording())
            if _core.exhausted():
                self._end_service()
                return
        self._take_changes(at_start=False)

    @_without_memory
    def _step(self) -> None:
        if self._ended:
            return
        try:
            self._close_step()
        finally:
            self._schedule.next()
        self._take_changes(at_start=False)

    # ---- what they are made of ------------------------------------------------------------------------------------------

    def _is_child(self) -> bool:
        return os.getpid() != self._pid

    def _is_enabled(self) -> bool:
        return self._watch is None or self._watch.enabled

    @property
    def _model(self) -> Any:
        return self._models.current

    def _begin(self) -> bool:
        loader = self._features.loader
        if loader is not None and loader.begin(self._schedule.step, self._rank):
            self._info(f"Module inputs are replaced by those of {self._config.load.path}.")
        if self._config.only_loads:
            return False
        if self._config.level in self._framework.levels_of_models and self._models.current is not None:
            self._framework.add_model(self._models.current)  # each time, for modules may have been exchanged
        if self._config.level == "mix" and not self._phases_hooked:
            self._framework.mark_phases()
            self._phases_hooked = True
        if not self._open():
            return False
        logger.debug("step %d is recorded in %s.", self._schedule.step, self._directory)
        return True

    def _is_within_budget(self) -> bool:
        if self._features.budget is None:
            return True
        config = self._features.budget.choose(self._schedule.step, self._models.current)
        if config is not None:
            kept = {name: getattr(self._config, name) for name in OF_EACH_START}
            self._apply(replace(config, **kept), by_budget=True)
        return config is not None

    def _begin_saving(self) -> bool:
        self._schedule.begun = self._schedule.step
        self._take_changes(at_start=True)
        self._rank = self._framework.rank_of_process()
        return self._open()

    def _open(self) -> bool:
        name = f"rank{self._rank}" if self._rank is not None else type(self)._name_unranked(self._config.dump_path)
        directory = os.path.join(self._config.dump_path, f"step{self._schedule.step}", name)
        if self._first_start and not self._active and os.path.isfile(os.path.join(directory, "dump.json")):
            logger.warning("dump_path holds an earlier dump, steps recorded now replace its steps: %s", directory)
        try:
            if self._framework.drive_runtime(self._config, directory):
                self._directory, self._active, self._by_runtime = directory, True, True
                return True
            _core.start(directory, self._config.task, self._config.level, self._framework.ranks_of_training())
        except ValueError as error:  # no permission, disk full: the training goes on without us
            text = "nothing is recorded in step %d, nor later while this lasts: %s (dump_path)"
            same = str(error).replace(directory, "")  # the same reason in each step
            self._features.reporter.fail_once(same, text, self._schedule.step, error)
            return False
        self._framework.begin_recording(self._config)
        if self._config.level == "mix":
            self._framework.mark_optimizers()
        self._directory, self._active = directory, True
        tasks.begin_step(self._config, self._schedule.step, self._rank)
        return True

    def _close_step(self) -> None:
        if self._features.loader is not None:
            self._features.loader.end_step(self._directory if self._active else None)
        if not self._active:
            return
        self._active = False
        self._features.saver.end_step()
        budget = self._features.budget
        if budget is not None and budget.leaves_out:
            _core.note_skip(budget.leaves_out, f"in step {self._schedule.step}")
        if self._by_runtime:
            self._by_runtime = False
            self._framework.stop_recording()
            done = self._framework.end_runtime_step(self._config, self._directory)
            self._info(f"step {self._schedule.step}: {done}.")
            return
        self._report(_core.end_step())
        summary = _core.take_summary()
        if budget is not None:
            budget.account(self._directory)
        what = "values" if self._config.level == "debug" else "ops"
        self._features.reporter.at_end_of_step(self._schedule.step, self._directory, summary, what, self._ranks_told())
        tasks.end_step(self._config, self._directory, summary["recorded"])
        if self._features.online is not None:
            self._features.online.take(self._directory, self._schedule.step)

    def _lose_step(self, method: str) -> None:
        for end in (self._framework.stop_recording, self._close_step):  # the state is that of a step that is over
            try:
                end()
            except MemoryError:
                pass
        text = "step %d: there was not enough memory for %s() of the debugger, so the record of the step is not whole."
        self._features.reporter.warn_once("memory", text, self._schedule.step, method)

    def _end_service(self) -> None:
        self._close_step()
        self._framework.stop_recording()
        self._ended = True
        self._features.end()
        if self._forget_dataloader is not None:
            self._forget_dataloader()
        self._info("recording has ended and the hooks are removed: msprobe ends successfully.")
        if self._config.exits_after_range and self._schedule.is_past_last():
            text = f"msprobe: exit after iteration {max(self._config.step)}"
            raise MsprobeException(MsprobeException.CAPTURE_ERROR, text)

    @_without_memory
    def _at_exit(self) -> None:
        if not self._is_child():
            self._framework.stop_recording()
            self._close_step()
            self._ended = True
            self._features.end()

    def _report(self, error: str) -> None:
        if error:
            self._features.reporter.warn_once(
                "incomplete", "the dump of step %d is incomplete: %s", self._schedule.step, error
            )

    def _ranks_told(self) -> int:
        """How many ranks a line of this process is for: all that record on the first of them, none on the others."""
        chosen = sorted(self._config.rank)
        if self._rank is None:
            return 1
        if self._rank != (chosen[0] if chosen else 0):
            return 0
        return len(chosen) or max(self._framework.ranks_of_training(), 1)

    def _info(self, text: str) -> None:
        if self._ranks_told():
            logger.info(text)

    # ---- what debugger.service does ----------------------------------------------------------------------------------------

    def _set(self, name: str, value: Any) -> None:
        """Changes a key of the configuration from the next start() on."""
        config = with_value(self._changed or self._config, name, value, f"debugger.service.config.{name}")
        if name not in OF_EACH_START:
            tasks.check(config, self._framework)
        self._changed = config

    @_without_memory
    def _reset(self) -> None:
        """Ends the recording but not the step; the next start() begins a new recording of it."""
        if not self._is_child() and not self._ended:
            self._close_step()

    def _maybe_reload_config(self, force: bool = False) -> bool:
        """Reloads a changed file, as start() and stop() do. `force` skips the minimum interval between looks."""
        if self._watch is None:
            return False
        before = self._watch.seen
        self._take_changes(at_start=False, force=force)
        return self._watch.seen != before

    # ---- hot reload -----------------------------------------------------------------------------------------------------

    def _take_changes(self, at_start: bool, force: bool = False) -> None:
        """Applies changes: the switch at once, others at the next start() or after the step."""
        if self._watch is not None:
            was_enabled = self._watch.enabled
            config = self._watch.poll(force)
            if config is not None:
                try:
                    tasks.check(config, self._framework)
                    self._changed = config
                except MsprobeException as error:
                    self._watch.disable(str(error))
                else:
                    self._tell_changes(config)
            if was_enabled and not self._watch.enabled and self._active:
                self._report(self._framework.stop_recording())
        if self._changed is not None and (at_start or not self._active):
            self._apply(self._changed)

    def _apply(self, config: Config, by_budget: bool = False) -> None:
        if not by_budget:
            self._changed = None
            self._keep_what_cannot_change(config)
        self._config.dump_enable = config.dump_enable
        changed = changed_keys(self._config, config, NEXT_START)
        if not changed:
            return
        if OF_EACH_START.issuperset(changed):
            if "dump_path" in changed:
                self._close_step()
            self._config = self._schedule.config = config
            self._ended = False
            return
        if self._active:
            logger.warning("the configuration changed within step %d, whose dump begins anew.", self._schedule.step)
            self._close_step()
        for warning in config.warnings:
            logger.warning(warning)
        if not by_budget:
            self._features.take(config, self._config)
        self._config = self._schedule.config = config
        self._ended, self._first_start = False, True
        self._models.forget_seen()
        self._prepare(config)

    def _tell_changes(self, config: Config) -> None:
        changed = changed_keys(self._config, config, NEXT_START)
        if changed:
            self._info(f"the configuration has changed and is in use from the next start() on: {', '.join(changed)}.")

    def _keep_what_cannot_change(self, config: Config) -> None:
        for name in changed_keys(self._config, config, NEVER):
            logger.warning("a change of %s counts from the next run on (%s).", name, config.place(name))
            setattr(config, name, getattr(self._config, name))

    # ---- enable_dataloader ----------------------------------------------------------------------------------------------

    def _leave_to_dataloader(self, method: str) -> bool:
        if self._forget_dataloader is None or self._ended:
            return False
        if not self._warned_about_dataloader:
            self._warned_about_dataloader = True
            logger.warning("enable_dataloader is true: batches begin and end the steps; %s() has no effect.", method)
        return True

    @locked
    def _begin_batch(self) -> None:
        if not self._is_child():
            self._start(None, None, None)

    @locked
    def _end_batch(self) -> None:
        if not self._is_child():
            self._stop()
            self._step()

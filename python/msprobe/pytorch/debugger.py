"""PrecisionDebugger: when something is recorded, and where it goes. What is recorded, and how, is in msprobe._core."""

import atexit
import functools
import os
import threading
import weakref
from typing import Any, Optional

import torch

from .. import _core
from . import error_log, hooks
from .config import Config, MsprobeException, load_config
from .log import logger
from .seed import seed_all

_SUPPORTED = {"task": ("statistics", "structure"), "level": ("L0", "L1", "mix"), "summary_mode": ("statistics", "md5")}


def _locked(method: Any) -> Any:
    @functools.wraps(method)
    def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with PrecisionDebugger._lock:
            return method(cls, *args, **kwargs)

    return call


class PrecisionDebugger:
    """Records what the training script computes between start() and stop(); step() begins the next step's directory.

    One object per process: later constructions return the first. The methods work on the class, too.
    """

    _instance: Optional["PrecisionDebugger"] = None
    _lock = threading.RLock()

    def __new__(cls, *args: Any, **kwargs: Any) -> "PrecisionDebugger":
        if cls._instance is None:
            instance = super().__new__(cls)
            instance._ready = False
            return instance
        return cls._instance

    def __init__(self, config_path=None, task=None, dump_path=None, level=None, *args, model=None, step=None):
        if self._ready:
            return
        model, step = _fifth_argument(args, model, step)
        config = load_config(config_path, task=task, dump_path=dump_path, level=level, step=step)
        _check_supported(config)
        for warning in config.warnings:
            logger.warning(warning)
        if model is not None:
            _check_model(model)
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
        if config.seed is not None:
            seed_all(config.seed, config.is_deterministic)
        hooks.set_up(config)
        atexit.register(self._at_exit)
        self._ready = True
        PrecisionDebugger._instance = self

    # ---- the interface --------------------------------------------------------------------------------------------------

    @classmethod
    @_locked
    def start(cls, model=None, token_range=None, rank_id=None, scheduled_tokens=None):
        self = cls._get()
        if self._is_child() or self._ended:
            return
        self._take_model(model, token_range)
        if self._is_past_last_step():
            self._end_service()
            return
        if not self._is_wanted_step():
            _core.pause()
            return
        if self._first_start:
            self._rank = rank_id if rank_id is not None else _rank_of_process()
        if self.config.rank and self._rank not in self.config.rank:
            self._first_start = False
            return
        if self._begin():
            self._first_start = False
            if token_range is not None:
                hooks.count_tokens(self._model, token_range)

    @classmethod
    @_locked
    def stop(cls):
        self = cls._get()
        if self._is_child() or self._ended or not self._active:
            return
        self._report(_core.stop())
        self._info(
            "msprobe: debugger.stop() is set successfully. Please set debugger.start() to turn on the dump switch again."
        )
        self._info(f"dump.json is at {self._directory}.")

    @classmethod
    @_locked
    def step(cls):
        self = cls._get()
        if self._is_child() or self._ended:
            return
        self._close_step()
        self._loop += 1

    @classmethod
    @_locked
    def set_init_step(cls, step):
        self = cls._get()
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise MsprobeException(
                MsprobeException.INVALID_PARAM_ERROR, f"step is {step!r}; allowed: an integer from 0 (set_init_step)"
            )
        self._init_step, self._loop = step, 0

    @classmethod
    @_locked
    def save(cls, variable, name, save_backward=True):
        """Single values are saved at level debug, which this release does not record."""
        cls._get()

    @classmethod
    @_locked
    def register_custom_api(cls, module, api, api_prefix=None):
        cls._get()
        why = hooks.add_custom(module, api, api_prefix)
        if why:
            raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, f"{api} cannot be recorded: {why}")

    # ---- what they are made of ------------------------------------------------------------------------------------------

    @classmethod
    def _get(cls) -> "PrecisionDebugger":
        if cls._instance is None:
            raise Exception("PrecisionDebugger instance is not created.")
        return cls._instance

    def _is_child(self) -> bool:
        return os.getpid() != self._pid

    @property
    def _current_step(self) -> int:
        return self._loop + self._init_step

    def _is_wanted_step(self) -> bool:
        return not self.config.step or self._current_step in self.config.step

    def _is_past_last_step(self) -> bool:
        return bool(self.config.step) and self._current_step > max(self.config.step)

    def _take_model(self, model: Any, token_range: Any) -> None:
        if model is not None:
            self._model = model
        if self.config.level == "L1" and token_range is None:
            return
        if self._model is None:
            raise MsprobeException(
                MsprobeException.INVALID_PARAM_ERROR,
                f"level {self.config.level} needs the model: call start(model=...) or PrecisionDebugger(model=...)",
            )
        _check_model(self._model)
        models = tuple(self._model) if isinstance(self._model, (list, tuple)) else (self._model,)
        if self.config.level != "L1" and not any(_same_models(known, models) for known in self._hooked):
            hooks.add_model(self._model)
            self._hooked = [known for known in self._hooked if all(model() is not None for model in known)]
            self._hooked.append(tuple(weakref.ref(model) for model in models))

    def _begin(self) -> bool:
        if self.config.level == "mix" and not self._phases_hooked:
            hooks.mark_phases()
            self._phases_hooked = True
        name = "rank" if self._rank is None else f"rank{self._rank}"
        directory = os.path.join(self.config.dump_path, f"step{self._current_step}", name)
        try:
            _core.start(directory, self.config.task, self.config.level)
        except ValueError as error:  # no permission, disk full: the training goes on without us
            logger.error("nothing is recorded in step %d: %s", self._current_step, error)
            return False
        self._directory, self._active = directory, True
        self._info("msprobe: debugger.start() is set successfully")
        self._info(f"Dump switch is turned on at step {self._current_step}.")
        self._info(f"Dump data will be saved in {os.path.dirname(directory)}.")
        return True

    def _close_step(self) -> None:
        if not self._active:
            return
        self._active = False
        self._report(_core.end_step())
        summary = _core.take_summary()
        error_log.write(self._directory, summary["skipped"], summary["examples"])
        skipped = sum(summary["skipped"].values())
        text = f"step {self._current_step}: captured {summary['recorded']} ops"
        if skipped:
            reasons = "; ".join(f"{kind} ({count})" for kind, count in summary["skipped"].items())
            logger.warning(
                "%s; skipped %d because %s. Details: dump_error_info.log beside dump.json.", text, skipped, reasons
            )
        else:
            self._info(text + ".")

    def _end_service(self) -> None:
        self._close_step()
        _core.stop()
        self._ended = True
        line = "*" * 50
        self._info(line)
        self._info("*" + "msprobe ends successfully.".center(48) + "*")
        self._info(line)

    def _at_exit(self) -> None:
        if not self._is_child():
            _core.stop()
            self._close_step()

    def _report(self, error: str) -> None:
        if error:
            logger.error("the dump of step %d is incomplete: %s", self._current_step, error)

    def _info(self, text: str) -> None:
        if self._rank in (None, 0):
            logger.info(text)


def _same_models(known: tuple, models: tuple) -> bool:
    return len(known) == len(models) and all(reference() is model for reference, model in zip(known, models))


def module_dump(module: torch.nn.Module, dump_name: str) -> None:
    """Records the calls of one module as Module.{dump_name}.{Class}, and no functions, until module_dump_end()."""
    PrecisionDebugger._get()
    if not isinstance(module, torch.nn.Module):
        raise MsprobeException(
            MsprobeException.INVALID_PARAM_ERROR,
            f"module is a {type(module).__name__}; allowed: torch.nn.Module (module_dump)",
        )
    if not isinstance(dump_name, str):
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "dump_name must be text (module_dump)")
    hooks.begin_module_dump(module, dump_name)


def module_dump_end() -> None:
    PrecisionDebugger._get()
    hooks.end_module_dump()


def _fifth_argument(args: tuple, model: Any, step: Any) -> tuple:
    """Newer scripts pass `step` fifth, older ones `model` fifth and `step` sixth."""
    if len(args) > 2:
        raise TypeError(f"PrecisionDebugger() takes at most 6 positional arguments ({4 + len(args)} given)")
    for value in args:
        if _is_model(value):
            model = value
        elif value is not None:
            step = value
    return model, step


def _is_model(value: Any) -> bool:
    if isinstance(value, torch.nn.Module):
        return True
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(m, torch.nn.Module) for m in value)


def _check_model(model: Any) -> None:
    models = model if isinstance(model, (list, tuple)) else [model]
    if not _is_model(model) or any(isinstance(m, torch.jit.ScriptModule) for m in models):
        raise MsprobeException(
            MsprobeException.INVALID_PARAM_ERROR,
            f"model is a {type(model).__name__}; allowed: torch.nn.Module (not a ScriptModule), or a list of them",
        )


def _check_supported(config: Config) -> None:
    for name, allowed in _SUPPORTED.items():
        value = getattr(config, name)
        if value not in allowed:
            _refuse(f"{name} '{value}' is not recorded by this release; use one of {', '.join(allowed)}")
    if config.task == "structure" and config.level == "L1":
        logger.warning("task structure needs modules: level L1 is replaced by mix.")
        config.level = "mix"
    unsupported = {
        "tensor_list": config.tensor_list,
        "slice": config.slice_,
        "request_id": config.request_id,
        "dump_enable": config.dump_enable is not None,
        "load": config.load,
        "enable_dataloader": config.enable_dataloader,
    }
    for name, given in unsupported.items():
        if given:
            _refuse(f"{name} is not supported by this release; remove it from the configuration")


def _refuse(text: str) -> None:
    raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _rank_of_process() -> Optional[int]:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    return None

"""PrecisionDebugger: the calls of a training script that say what is recorded, and when."""

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import torch

from . import hooks, tasks
from .arguments import ModelOrModels, check_model, fifth_argument, is_index, refuse
from .config import MsprobeException, load_config
from .lifecycle import Lifecycle, locked
from .log import logger
from .recording import Recording
from .service import Service, ServiceConfig
from .words import say, wrong


class PrecisionDebugger(Lifecycle):
    """Records what a training or inference script computes, so that it can be compared with another run.

        debugger = PrecisionDebugger(config_path="config.json")   # before the model is built
        for batch in loader:
            debugger.start(model=model)
            loss = model(batch).loss
            loss.backward()
            optimizer.step()
            debugger.stop()
            debugger.step()                                       # the next start() writes step{n+1}

    Everything computed between start() and stop() goes to `{dump_path}/step{n}/rank{r}`: dump.json with the Max, Min, Mean and
    Norm (L2) of every tensor, stack.json with call stacks, construct.json with the module tree, and with task `tensor` the
    tensors themselves. docs/en/capture/config.md lists every key of the configuration, docs/en/capture/values.md says how the
    statistics are computed. The script computes exactly the same bits with and without the tool, and no hook is in place
    outside start() and stop().

    There is one instance per process: constructing it again returns the existing one unchanged, and every method also works
    on the class (`PrecisionDebugger.start()`). All methods are thread-safe. They raise MsprobeException before the first
    construction and do nothing in forked children such as DataLoader workers.

    Attributes:
        config: The configuration, with defaults filled in. The same object as `service.config`: assign to its attributes to
            change it from the next start() on.
        service: The interface for frameworks that have the calls built in (sglang, verl); see Service.
    """

    service: Service

    _instance: Optional["PrecisionDebugger"] = None
    _ready: bool
    _on_second: Any = None  # told when the script constructs one beside the attached one

    def __new__(cls, *args: Any, **kwargs: Any) -> "PrecisionDebugger":
        """Returns the instance of this process, and creates it the first time."""
        if cls._instance is None:
            instance = super().__new__(cls)
            instance._ready = False
            return instance
        return cls._instance

    def __init__(
        self,
        config_path: Union[str, "os.PathLike[str]", None] = None,
        task: Optional[str] = None,
        dump_path: Union[str, "os.PathLike[str]", None] = None,
        level: Optional[str] = None,
        *args: Any,
        model: Optional[ModelOrModels] = None,
        step: Optional[Sequence[Union[int, str]]] = None,
    ) -> None:
        """Reads the configuration and prepares the hooks. Nothing is recorded before start().

        Arguments take precedence over the file; None and "" leave a key as it is in the file.

        Args:
            config_path: Path of the JSON configuration. None for the default one of the package: statistics at level L1.
            task: What to record: `statistics` (default), `tensor`, `structure`, `overflow_check`, `diff_check`,
                `exception_dump` or `grad_probe`.
            dump_path: Directory for the dump; created with its parents when recording begins.
            level: `L0` (modules), `L1` (functions, default), `mix` (both) or `debug` (only what save() is given).
            *args: At most two, for compatibility: `step`, or `model` and then `step`.
            model: The model or a list of models, if it is not passed to start(). Required for levels L0 and mix.
            step: Steps to record, counted from 0, as numbers and inclusive ranges: `[0, "4-7"]`. Empty for all.

        Raises:
            MsprobeException: The configuration is invalid. The message gives the key, its value, what is allowed, and the file
                and line.
            TypeError: More than six positional arguments were given.
        """
        if self._ready:
            if PrecisionDebugger._on_second is not None:
                PrecisionDebugger._on_second()
            return
        model, step = fifth_argument(args, model, step)
        overrides = {"task": task, "dump_path": dump_path, "level": level, "step": step}
        config = load_config(config_path, **overrides)
        tasks.check(config)
        if config_path is None:
            logger.debug("no config_path is given: %s is used.", config.config_path)
        for warning in config.warnings:
            logger.warning(warning)
        if model is not None:
            check_model(model)
        self.service = Service(self)
        self._set_up(config, overrides, model)
        self._ready = True
        PrecisionDebugger._instance = self

    @classmethod
    @locked
    def start(
        cls,
        model: Optional[ModelOrModels] = None,
        token_range: Optional[Sequence[int]] = None,
        rank_id: Optional[int] = None,
        scheduled_tokens: Optional[Mapping[str, int]] = None,
    ) -> None:
        """Records everything from here to stop(), if the configuration selects this step and rank.

        start() and stop() may be called several times within a step, for example once per micro batch; all of it goes to the
        same files. start() does nothing at level `debug`, with task `grad_probe`, and with `enable_dataloader`. If something
        cannot be recorded or written (disk full, no permission), the log and the summary of the step say so and the training
        continues.

        Args:
            model: The model or a list of models; the modules of a list are named `Module.0.`, `Module.1.` and so on. None for
                the model of the last start() or of the constructor. Required for levels L0 and mix, unless it is known.
            token_range: [first, last], both inclusive, for inference: the forward passes of the model to record, counted
                from 0. Used once per run; needs a model.
            rank_id: The number r of the directory `rank{r}`, for the first recorded step. None for the rank of
                torch.distributed or, before that is initialised, of the launcher (RANK); without either the directory is
                `rank`.
            scheduled_tokens: {request id: number of tokens}, in the order of dimension 0. If `request_id` is configured, only
                the tokens of that request are recorded, and steps without it are skipped.

        Raises:
            MsprobeException: An argument is invalid, a required model is missing, PrecisionDebugger has not been constructed,
                or all configured steps are done and `exit_after_range` is true ("msprobe: exit after iteration N").
        """
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("start"):
            self._start(model, token_range, rank_id, scheduled_tokens)

    @classmethod
    @locked
    def stop(cls) -> None:
        """Stops the recording that start() began and removes the hooks.

        The files of the step are complete from here on. Another start() before step() appends to them.

        Raises:
            MsprobeException: PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("stop"):
            self._stop()

    @classmethod
    @locked
    def step(cls) -> None:
        """Ends the step: closes its files and logs a summary. The next start() records into the directory of the next step.

        Raises:
            MsprobeException: PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("step"):
            self._step()

    @classmethod
    def record(cls, model: Optional[ModelOrModels] = None, step: bool = True, **options: Any) -> Recording:
        """Records a block as one step: `with PrecisionDebugger.record(model): ...`. Also works as a decorator.

        Calls start() before the block, and stop() and step() after it, however it is left: normally, by an exception (which
        propagates), or by return, break or continue.

        Args:
            model: See start().
            step: False to leave out step(), for micro batches.
            **options: The other arguments of start(): `token_range`, `rank_id`, `scheduled_tokens`.

        Returns:
            A context manager and decorator; `as` binds PrecisionDebugger.
        """
        return Recording(cls, model, step, options)

    @classmethod
    @locked
    def forward_backward_dump_end(cls) -> None:
        """Stops the recording in the middle of a step: the earlier name of stop().

        Unlike stop(), it also takes effect with `enable_dataloader`.

        Raises:
            MsprobeException: PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        if not self._is_child():
            self._stop()

    @classmethod
    @locked
    def set_init_step(cls, step: int) -> None:
        """Sets the number of the next step, for example after loading a checkpoint.

        Args:
            step: The number, 0 or greater.

        Raises:
            MsprobeException: `step` is not such a number, or PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        if not is_index(step):
            refuse(wrong("step", repr(step), "an integer from 0", "set_init_step"))
        self._schedule.begin_at(step)

    @classmethod
    @locked
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Writes a value to debug.json of the current step as `{name}.{count}.debug`. Only at level `debug`.

        Needs no start() and stop(), but a step() at the end of each step. Does nothing at other levels.

        Args:
            variable: A tensor of any shape and dtype, or any nesting of dicts, lists, tuples and dataclasses of tensors,
                numbers, strings and arrays. Tensors are written as statistics, and with task `tensor` also as files.
            name: Name of the entry; `count` numbers the calls with this name within the step, from 0.
            save_backward: Also write the gradients of the tensors in `variable`, as `{name}_grad.{count}.debug`: those that
                have been computed by the time of step().

        Raises:
            MsprobeException: `name` is not a string, `save_backward` is not a bool, or PrecisionDebugger has not been
                constructed.
        """
        self = cls._get()
        if not isinstance(name, str) or not isinstance(save_backward, bool):
            value = f"{name!r}, save_backward is {save_backward!r}"
            refuse(wrong("name", value, "text, and True or False", "save"))
        if self._is_child() or self._ended or self._config.level != "debug" or not self._is_enabled():
            return
        if self._schedule.wants_step() and (self._active or self._begin_saving()):
            try:
                self._features.saver.save(variable, name, save_backward)
            except MemoryError:
                self._features.reporter.warn_once("save", "there was not enough memory to save %s.", name)

    @classmethod
    @locked
    def monitor(cls, model: ModelOrModels) -> None:
        """Lists the gradients of a model's parameters at each optimizer step. Only with task `grad_probe`.

        Writes `{dump_path}/rank{r}/grad_summary_{step}.csv` with one row per parameter: max, min and L2 norm of its gradient,
        its shape, and further columns that depend on `grad_level`. With another task it takes effect once a reloaded
        configuration has this one.

        Args:
            model: The model, or a list of models whose parameters are then prefixed with `0.`, `1.` and so on.

        Raises:
            MsprobeException: `model` is not a module, or PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        check_model(model)
        if not self._is_child():
            self._features.monitor(model)

    @classmethod
    @locked
    def register_custom_api(cls, module: Any, api: str, api_prefix: Optional[str] = None) -> None:
        """Records one more function, as `{api_prefix}.{api}.{count}`, until restore_custom_api().

        Args:
            module: The module, class or other object that holds the function.
            api: Name of the function.
            api_prefix: Prefix of the entries; None for the name of `module`.

        Raises:
            MsprobeException: There is no such function, it cannot be hooked, or PrecisionDebugger has not been constructed.
        """
        cls._get()
        why = hooks.add_custom(module, api, api_prefix)
        if why:
            refuse(say("%(name)s cannot be recorded: %(why)s", name=api, why=why))

    @classmethod
    @locked
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """Undoes register_custom_api(). Does nothing for a function that was not registered.

        Args:
            module: See register_custom_api().
            api: See register_custom_api().

        Raises:
            MsprobeException: PrecisionDebugger has not been constructed.
        """
        cls._get()
        hooks.remove_custom(module, api)

    @classmethod
    def _get(cls) -> "PrecisionDebugger":
        if cls._instance is None:
            raise MsprobeException(MsprobeException.CAPTURE_ERROR, say("PrecisionDebugger instance is not created."))
        return cls._instance

    @property
    def config(self) -> ServiceConfig:
        """The configuration; see the class."""
        return self.service.config

    @property
    def _model(self) -> Optional[Union[torch.nn.Module, Sequence[torch.nn.Module]]]:
        return self._models.current


# Without it help() and notebooks show the parameters of __new__, which takes anything.
_PARAMETERS = list(inspect.signature(PrecisionDebugger.__init__).parameters.values())[1:]
PrecisionDebugger.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]

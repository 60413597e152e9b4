"""The calls of a training script that are the same whatever the framework: what each PrecisionDebugger inherits."""

from typing import Any, Optional, TypeVar

from . import tasks
from .arguments import is_index, refuse
from .config import MsprobeException, load_config
from .lifecycle import Lifecycle, locked
from .log import logger
from .recording import Recording
from .service import Service, ServiceConfig
from .words import say, wrong

Own = TypeVar("Own", bound="Debugger")


class Debugger(Lifecycle):
    """Base of the PrecisionDebugger of each framework, which adds the constructor and start().

    Attributes:
        config: The configuration, with defaults filled in. The same object as `service.config`: assign to its attributes to
            change it from the next start() on.
        service: The interface for frameworks that have the calls built in (sglang, verl); see Service.
    """

    service: Service

    _instance: Optional["Debugger"] = None
    _ready: bool
    _on_second: Any = None  # told when the script constructs one beside the attached one

    def __new__(cls: type[Own], *args: Any, **kwargs: Any) -> Own:
        """Returns the instance of this process, and creates it the first time."""
        if cls._instance is None:
            instance = super().__new__(cls)
            instance._ready = False
            return instance
        return cls._instance  # type: ignore[return-value]

    def _construct(self, config_path: Any, overrides: dict, model: Any) -> None:
        """Reads the configuration and prepares the hooks."""
        config = load_config(config_path, **overrides)
        tasks.check(config, self._framework)
        if config_path is None:
            logger.debug("no config_path is given: %s is used.", config.config_path)
        for warning in config.warnings:
            logger.warning(warning)
        if model is not None:
            self._framework.check_model(model)
        self.service = Service(self)
        self._set_up(config, overrides, model)
        self._ready = True

    def _is_second(self) -> bool:
        """Tells whether this process has one already, and whoever attached it that the script makes another."""
        if self._ready and self._on_second is not None:
            self._on_second()
        return self._ready

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
    def record(cls, model: Any = None, step: bool = True, **options: Any) -> Recording:
        """Records a block as one step: `with PrecisionDebugger.record(model): ...`. Also works as a decorator.

        Calls start() before the block, and stop() and step() after it, however it is left: normally, by an exception (which
        propagates), or by return, break or continue.

        Args:
            model: See start().
            step: False to leave out step(), for micro batches.
            **options: The other arguments of start(): `token_range`, `rank_id`, `scheduled_tokens`, `rows`.

        Returns:
            A context manager and decorator; `as` binds PrecisionDebugger.
        """
        return Recording(cls, model, step, options)

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
    def register_custom_api(cls, module: Any, api: str, api_prefix: Optional[str] = None) -> None:
        """Records one more function, as `{api_prefix}.{api}.{count}`, until restore_custom_api().

        Args:
            module: The module, class or other object that holds the function.
            api: Name of the function.
            api_prefix: Prefix of the entries; None for the name of `module`.

        Raises:
            MsprobeException: There is no such function, it cannot be hooked, or PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        why = self._framework.add_custom(module, api, api_prefix)
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
        self = cls._get()
        self._framework.remove_custom(module, api)

    @classmethod
    def _get(cls: type[Own]) -> Own:
        if cls._instance is None:
            raise MsprobeException(MsprobeException.CAPTURE_ERROR, say("PrecisionDebugger instance is not created."))
        return cls._instance  # type: ignore[return-value]

    @property
    def config(self) -> ServiceConfig:
        """The configuration; see the class."""
        return self.service.config

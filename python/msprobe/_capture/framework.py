"""What a capture asks of the framework whose training it records. Each framework's package has one object of this kind."""

from collections.abc import Callable, Iterable
from typing import Any, Optional

from .config import Config


class Framework:
    """The methods that have a body here are for frameworks that have no such thing."""

    module_type: type  # of models
    module_word = "Module"  # what names of its entries begin with
    levels_of_models: tuple = ("L0", "mix")  # at which add_model() has something to do
    levels_of_decisions: tuple = ("L0", "L1", "mix")  # of tasks that decide after an op ran whether it is kept
    tensor_type: type
    has_overflow_flag = False  # of the device

    def seed(self, config: Config) -> None:
        """Seeds the generators as the configuration says."""
        raise NotImplementedError

    def unavailable(self, config: Config) -> str:
        """Explains why the task or level of the configuration cannot be recorded here; empty if it can."""
        raise NotImplementedError

    def check_model(self, model: Any) -> None:
        """Raises MsprobeException unless it is a model or a list of models."""
        raise NotImplementedError

    def rank_of_process(self) -> Optional[int]:
        """Returns the rank, or None for a process that is the only one."""
        raise NotImplementedError

    def ranks_of_training(self) -> int:
        """Returns how many ranks there are, or 0 where nothing says it."""
        return 0

    # ---- hooks

    def init(self) -> None:
        """Tells the recorder which framework it records."""
        raise NotImplementedError

    def set_up(self, config: Config) -> None:
        """Prepares the hooks of a configuration; none is in place before start()."""
        raise NotImplementedError

    def add_new_ops(self, config: Config) -> None:
        """Hooks functions that have come into being since the last call."""

    def add_model(self, model: Any, number: Optional[int] = None) -> None:
        """Hooks the modules of a model or of several; `number` is the index of a single one among several."""
        raise NotImplementedError

    def named_modules(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Yields every module below the roots with the prefix of its entries."""
        raise NotImplementedError

    def mark_phases(self) -> None:
        """Prepares that what runs in parts of a step that are not the model's stands under them in construct.json."""

    def mark_optimizers(self) -> None:
        """The same for optimizers, at the begin of each recorded step."""

    def records(self, config: Config) -> bool:
        """Tells whether start() and stop() have something to do at the level of the configuration."""
        return config.level not in ("debug", "L2")

    def drive_runtime(self, config: Config, directory: str) -> bool:
        """Has the runtime of the device dump into this directory, in place of a recording. False: it is no such level.

        Raises:
            ValueError: What the runtime reads could not be written.
        """
        return False

    def end_runtime_step(self, config: Config, directory: str) -> str:
        """A step for which drive_runtime() took over is over. Returns what was done in it."""
        return f"the runtime of the device dumped below {directory}"

    def begin_recording(self, config: Config) -> None:
        """Called when a step is open and recording begins or goes on."""

    def stop_recording(self) -> str:
        """Stops recording. Returns an error message, or an empty string."""
        raise NotImplementedError

    def count_tokens(self, model: Any, token_range: Any) -> None:
        """Records the forward passes of the root model numbered first to last, counted from 0, once (inference)."""
        raise NotImplementedError

    def before_forward(self, model: Any, call: Callable[[], None]) -> Optional[Callable[[], None]]:
        """Has `call` called before each forward of a model. Returns what ends that; None where there is no such hook."""
        return None

    def add_custom(self, module: Any, api: str, prefix: Any = None) -> str:
        """Hooks one function. Returns why that is impossible, or an empty string."""
        raise NotImplementedError

    def remove_custom(self, module: Any, api: str) -> bool:
        """Undoes add_custom(). Returns False if there is nothing to undo."""
        raise NotImplementedError

    # ---- tensors

    def hook_gradient(self, tensor: Any, arrived: Callable[[Any], None]) -> Any:
        """Has `arrived` called with the gradient of a tensor; the result has remove(). None: it gets no gradient."""
        raise NotImplementedError

    def parameter_bytes(self, models: list) -> tuple[int, int]:
        """Returns the bytes of all parameters, and of those that get a gradient now."""
        raise NotImplementedError

    # ---- what not every framework has

    def follow_batches(self, begin: Callable[[], None], end: Callable[[], None]) -> Callable[[], None]:
        """Calls `begin` when a batch is there and `end` when the next is asked for; the result undoes that."""
        raise NotImplementedError

    def input_loader(self, config: Config) -> Any:
        """Returns what replaces inputs of modules as `load` says, or None."""
        return None

    def online_feed(self, config: Config) -> Any:
        """Returns what sends the recorded calls to a checker, or None."""
        return None

    def grad_probe(self, config: Config, before: Any) -> Any:
        """Returns what lists the gradients at each step of an optimizer, or None."""
        return None

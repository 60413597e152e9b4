"""debugger.service, by which programs written for earlier releases tell the tool where a part of a step goes."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .config.keys import BY_NAME

# Earlier names of attributes of the configuration, and keys whose own names are Python's.
_ATTRIBUTES = {"list": "list_", "slice": "slice_", "slice_info": "slice_", "load_config": "load"}


class ServiceConfig:
    """Gives access to the configuration: `debugger.service.config.dump_path = "dump/actor"`.

    Its attributes are the keys of config.json (docs/en/capture/config.md), including those of the task's section. An assigned
    value is validated immediately and takes effect at the next start(). An invalid value raises MsprobeException and changes
    nothing; an unknown key raises AttributeError.
    """

    __slots__ = ("_debugger",)

    def __init__(self, debugger: Any) -> None:
        """Wraps the configuration of a debugger.

        Args:
            debugger: The PrecisionDebugger.
        """
        object.__setattr__(self, "_debugger", debugger)

    def __getattr__(self, name: str) -> Any:
        """Returns the value of a key, including one that takes effect at the next start()."""
        config = self._debugger._changed or self._debugger._config
        return getattr(config, _ATTRIBUTES.get(name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a key from the next start() on."""
        name = {"slice_info": "slice", "load_config": "load"}.get(name, name)
        if name not in BY_NAME or not BY_NAME[name].kind:
            raise AttributeError(
                f"debugger.service.config has no {name}: assign a key of config.json that has an effect"
            )
        self._debugger._set(name, value)


class Service:
    """The interface for frameworks that have the calls built in: `debugger.service`.

    Attributes:
        config: The configuration; assign to its attributes to change it.
    """

    def __init__(self, debugger: Any) -> None:
        """Wraps a debugger.

        Args:
            debugger: The PrecisionDebugger.
        """
        self._debugger = debugger
        self.config = ServiceConfig(debugger)

    @property
    def current_iter(self) -> int:
        """Number of the step of the last start(), from 0."""
        return self._debugger._schedule.begun

    @property
    def current_rank(self) -> Optional[int]:
        """The rank whose directory is written; None without ranks and before the first start()."""
        return self._debugger._rank

    @property
    def model(self) -> Any:
        """The model or list of models of the last start(); None if there is none or it no longer exists."""
        return self._debugger._models.current

    @property
    def dump_iter_dir(self) -> Optional[str]:
        """The `step{n}` directory of the last recorded step, or None."""
        return os.path.dirname(self._debugger._directory) or None

    @property
    def should_stop_service(self) -> bool:
        """Whether recording has ended for the rest of the run."""
        return self._debugger._ended

    def start(
        self,
        model: Any = None,
        token_range: Optional[Sequence[int]] = None,
        rank_id: Optional[int] = None,
        scheduled_tokens: Optional[Mapping[str, int]] = None,
        rows: Optional[Sequence[Any]] = None,
    ) -> None:
        """Calls PrecisionDebugger.start().

        Args:
            model: The model or a list of models.
            token_range: [first, last], the forward passes to record.
            rank_id: The number of the rank directory.
            scheduled_tokens: {request id: number of tokens}.
            rows: The requests in the order of dimension 0.
        """
        self._debugger.start(model, token_range, rank_id, scheduled_tokens, rows)

    def stop(self) -> None:
        """Calls PrecisionDebugger.stop()."""
        self._debugger.stop()

    def step(self) -> None:
        """Calls PrecisionDebugger.step()."""
        self._debugger.step()

    def save(self, variable: Any, name: str, save_backward: bool = True) -> None:
        """Calls PrecisionDebugger.save().

        Args:
            variable: The value.
            name: Name of the entry.
            save_backward: Also write the gradients of the tensors in it.
        """
        self._debugger.save(variable, name, save_backward)

    def reset_status(self) -> None:
        """Ends the recording of a stage without ending the step.

        The next start() begins a new recording of the same step, with call counters back at 0. Give each stage a `dump_path` of
        its own: a second recording in the same directory replaces the first.
        """
        with self._debugger._lock:
            self._debugger._reset()

    _reset_status = reset_status

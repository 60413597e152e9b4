"""TrainerMonitorV2: the framework is chosen by name, and loaded only then."""

import importlib
from typing import Any, Optional

_FRAMEWORKS = {"pytorch": "pytorch", "pt": "pytorch", "torch": "pytorch", "mindspore": "mindspore", "ms": "mindspore"}


class TrainerMonitorV2:
    """Writes statistics of modules, gradients, optimizer states, parameters and communications, one csv file for each kind."""

    def __init__(self, config_path: str, fr: Optional[str] = None) -> None:
        """Reads the configuration.

        Args:
            config_path: A JSON file; docs/en/monitor/config.md lists its keys.
            fr: pytorch or mindspore; None: as the configuration says, pytorch without a word.

        Raises:
            ValueError: The configuration cannot be read, or names a framework or format that there is not.
            TypeError: It is no JSON object.
        """
        from ..._monitor.v2_config import load_v2_config

        self.config_path = config_path
        self.config = load_v2_config(config_path)
        name = str(fr or self.config.framework).strip().lower()
        if name not in _FRAMEWORKS:
            raise ValueError(f"framework is {name!r}; allowed: {', '.join(_FRAMEWORKS)} ({config_path})")
        self.framework = _FRAMEWORKS[name]
        self._monitor = importlib.import_module(f"msprobe.{self.framework}.monitor.v2").MonitorV2(self.config)

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return self._monitor.rank

    @property
    def current_step(self) -> int:
        """How many steps have ended."""
        return self._monitor.current_step

    def start(self, model: Any = None, optimizer: Any = None, **context: Any) -> None:
        """Hooks the model and its optimizer.

        Args:
            model: A module or Cell, or a list of them.
            optimizer: That trains it; given, its steps (its calls, of MindSpore) are those of the monitor.
            **context: grad_acc_steps or micro_batch_number: backward passes of a step.

        Raises:
            ValueError: A monitor of the configuration needs a model or an optimizer that was not given.
        """
        self._monitor.start(model, optimizer, **context)

    def step(self) -> None:
        """Ends a step, where no optimizer was given to start()."""
        self._monitor.step()

    def stop(self) -> None:
        """Removes the hooks."""
        self._monitor.stop()

"""What a capture can do besides recording, each as far as the configuration asks for it."""

import weakref
from typing import Any, Optional

from .budget import Budget
from .config import Config
from .framework import Framework
from .save import Saver
from .step_report import StepReporter


class Features:
    """The optional parts of a capture; None for those the configuration does not ask for."""

    def __init__(self, config: Config, framework: Framework) -> None:
        self._framework = framework
        self.saver = Saver(framework)
        self.reporter = StepReporter()
        self.budget: Optional[Budget] = None
        self.loader: Any = None
        self.online: Any = framework.online_feed(config)  # of the configuration that the run began with
        self.grad_probe: Any = None
        self._monitored: list = []  # (weak references to the models of a monitor(), whether it was a list)
        self.take(config, None)

    def take(self, config: Config, before: Optional[Config]) -> None:
        """Switches to another configuration; `before` is the one it replaces."""
        self.budget = Budget(config, self._framework) if config.budget else None
        if before is None or config.load != before.load:
            if self.loader is not None:
                self.loader.end()
            self.loader = self._framework.input_loader(config) if config.load is not None else None
        if self.grad_probe is not None:
            self.grad_probe.close()
        self.grad_probe = self._framework.grad_probe(config, self.grad_probe) if config.task == "grad_probe" else None
        for references, several in self._monitored if self.grad_probe is not None else ():
            models = [model() for model in references]
            if all(model is not None for model in models):
                self.grad_probe.monitor(models if several else models[0])

    def end(self) -> None:
        """Recording has ended."""
        if self.online is not None:
            self.online.end()

    def monitor(self, model: Any) -> None:
        """Passes models to the gradient probe, and keeps them for a later configuration that has one."""
        several = isinstance(model, (list, tuple))
        monitored = ([weakref.ref(m) for m in (model if several else [model])], several)
        if monitored not in self._monitored:
            self._monitored.append(monitored)
        if self.grad_probe is not None:
            self.grad_probe.monitor(model)

"""The models that start() was called with. They are not kept alive."""

import functools
import weakref
from typing import Any

from .arguments import refuse
from .config import Config
from .framework import Framework
from .words import say

_WITHOUT_MODEL = ("L1", "L2")  # levels


class Models:
    """Tracks the current model and those already prepared."""

    def __init__(self, framework: Framework, model: Any = None) -> None:
        self._framework = framework
        self._seen: list[tuple] = []  # weak references to the models of each start()
        self.current = model

    @property
    def current(self) -> Any:
        """The model of the last start() or of the constructor; None if it no longer exists."""
        models = [model() for model in self._references]
        if not models or any(model is None for model in models):
            return None
        return models if self._several else models[0]

    @current.setter
    def current(self, model: Any) -> None:
        self._several = isinstance(model, (list, tuple))
        models = model if self._several else [] if model is None else [model]
        # What is not a module is refused later, and named then.
        self._references = [
            weakref.ref(m) if isinstance(m, self._framework.module_type) else functools.partial(_same, m)
            for m in models
        ]

    def take(self, model: Any, config: Config, token_range: Any, loader: Any) -> None:
        """Makes `model` the current one, if given, and prepares it if it is new; `loader` hears of new modules."""
        if model is not None:
            self.current = model
        if config.level in _WITHOUT_MODEL and token_range is None and loader is None:
            return
        if self.current is None:
            if config.level in _WITHOUT_MODEL:
                refuse(
                    say("token_range and load need the model: call start(model=...) or PrecisionDebugger(model=...)")
                )
            text = "level %(level)s needs the model: call start(model=...) or PrecisionDebugger(model=...)"
            refuse(say(text, level=config.level))
        self._framework.check_model(self.current)
        models = tuple(self.current) if isinstance(self.current, (list, tuple)) else (self.current,)
        if any(_same_models(known, models) for known in self._seen):
            return
        if loader is not None:
            loader.add_modules(self._framework.named_modules(self.current))
        self._seen = [known for known in self._seen if all(model() is not None for model in known)]
        self._seen.append(tuple(weakref.ref(model) for model in models))

    def forget_seen(self) -> None:
        """Treats every model as new at its next start(); Framework.add_model() still knows its modules."""
        self._seen = []


def _same_models(known: tuple, models: tuple) -> bool:
    return len(known) == len(models) and all(reference() is model for reference, model in zip(known, models))


def _same(value: Any) -> Any:
    return value

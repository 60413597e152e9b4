"""PrecisionDebugger.save: single values in debug.json, and the gradients of the tensors in them."""

import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Optional

from .. import _core
from .framework import Framework

_MAX_DEPTH = 400


class Saver:
    """Values that save() has begun in this step. Gradients arrive later and are written when the step ends."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._lock = threading.Lock()  # gradients arrive on threads of autograd
        self._counts: Counter = Counter()
        self._gradients: dict = {}  # name of the entry -> its tree
        self._handles: list = []  # of the hooks of this step: parameters live on
        self._step = 0

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Writes the value and hooks its tensors for their gradients."""
        count = self._counts[name]
        self._counts[name] += 1
        _core.save(f"{name}.{count}.debug", variable)
        if save_backward:
            entry = f"{name}_grad.{count}.debug"
            tree = _core.run_unseen(lambda: self._hooked(variable, entry, 0))
            with self._lock:
                self._gradients[entry] = tree

    def end_step(self) -> None:
        """Writes the gradients that have arrived."""
        with self._lock:
            gradients, self._gradients = self._gradients, {}
            handles, self._handles = self._handles, []
            self._step += 1
        for handle in handles:
            handle.remove()
        self._counts.clear()
        for entry, tree in gradients.items():
            _core.save_json(entry, json.dumps(_plain(tree), indent=1))

    def _hooked(self, value: Any, place: str, depth: int) -> Any:
        """Mirrors the structure of the value, with a _Gradient for each tensor that gets one and None elsewhere."""
        if isinstance(value, self._framework.tensor_type):
            return self._hook(value, place)
        if depth > _MAX_DEPTH:
            return None
        items = _items(value)
        if items is None:
            return None
        tree = {str(key): self._hooked(item, f"{place}.{key}", depth + 1) for key, item in items}
        return list(tree.values()) if isinstance(value, (list, tuple)) and not hasattr(value, "_fields") else tree

    def _hook(self, tensor: Any, place: str) -> Optional["_Gradient"]:
        gradient, step = _Gradient(), self._step

        def arrived(value: Any) -> None:
            if step == self._step:
                gradient.text = _core.value_json(place, value)

        handle = self._framework.hook_gradient(tensor, arrived)
        if handle is None:
            return None
        self._handles.append(handle)
        return gradient


class _Gradient:
    text = "null"  # JSON


def _items(value: Any) -> Any:
    """Returns the (key, item) pairs of a container; None for other values."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(name, getattr(value, name)) for name in value._fields]
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in fields(value)]
    return None


def _plain(tree: Any) -> Any:
    if isinstance(tree, _Gradient):
        return json.loads(tree.text)
    if isinstance(tree, dict):
        return {key: _plain(item) for key, item in tree.items()}
    return [_plain(item) for item in tree] if isinstance(tree, list) else tree

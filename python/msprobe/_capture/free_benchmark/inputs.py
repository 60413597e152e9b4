"""Which inputs of a call are changed. How, each framework says in its kind of Tensors."""

from collections.abc import Callable
from typing import Any, Optional

from .settings import ADD_NOISE, BIT_NOISE, CHANGE_VALUE, IMPROVE_PRECISION, NO_CHANGE, TO_CPU


class Tensors:
    """Tensors of a framework. None: this one cannot be changed so."""

    kind: type

    def is_floating(self, tensor: Any) -> bool:
        """Whether it has real numbers."""
        raise NotImplementedError

    def noisy(self, tensor: Any) -> Optional[Any]:
        """Returns it with something added to every element that is not small."""
        raise NotImplementedError

    def flipped(self, tensor: Any) -> Optional[Any]:
        """Returns it with the last bit of every normal number flipped."""
        raise NotImplementedError

    def exchanged(self, tensor: Any) -> Optional[Any]:
        """Returns it with its first and its last element exchanged."""
        raise NotImplementedError

    def widened(self, tensor: Any) -> Optional[Any]:
        """Returns one of 16 bits as float32."""
        raise NotImplementedError

    def on_cpu(self, tensor: Any) -> Any:
        """Returns it on the CPU."""
        raise NotImplementedError


def mapped(kind: type, value: Any, change: Callable[[Any], Any]) -> Any:
    """Applies `change` to every tensor of an argument."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(kind, part, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(kind, part, change) for part in value))
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(mapped(kind, part, change) for part in value)
    return value


def first_input(tensors: Tensors, args: tuple) -> int:
    """Returns the index of the argument that is changed; -1 without one."""
    for index, value in enumerate(args):
        if isinstance(value, tensors.kind):
            if tensors.is_floating(value):
                return index
        elif isinstance(value, (list, tuple, dict)):
            return index
    return -1


def perturbed(tensors: Tensors, mode: str, args: tuple, kwargs: dict) -> Optional[tuple[tuple, dict]]:
    """Changes the inputs of a call.

    Args:
        tensors: Those of the framework.
        mode: One of settings.MODES.
        args: The positional arguments; they stay as they are.
        kwargs: The keyword arguments.

    Returns:
        The arguments of the changed call, or None when there is nothing that could be changed.
    """
    at = first_input(tensors, args)
    if at < 0:
        return None
    changed = [mode == NO_CHANGE or mode == TO_CPU]
    first_only = {ADD_NOISE: tensors.noisy, BIT_NOISE: tensors.flipped, CHANGE_VALUE: tensors.exchanged}
    if mode in first_only:

        def move(tensor: Any) -> Any:
            made = None if changed[0] or not tensors.is_floating(tensor) else first_only[mode](tensor)
            changed[0] = changed[0] or made is not None
            return tensor if made is None else made

        args = (*args[:at], mapped(tensors.kind, args[at], move), *args[at + 1 :])
    elif mode in (IMPROVE_PRECISION, TO_CPU):

        def widen(tensor: Any) -> Any:
            tensor = tensors.on_cpu(tensor) if mode == TO_CPU else tensor
            made = tensors.widened(tensor)
            changed[0] = changed[0] or made is not None
            return tensor if made is None else made

        args, kwargs = mapped(tensors.kind, args, widen), mapped(tensors.kind, kwargs, widen)
    if not changed[0]:
        return None
    if "inplace" in kwargs:
        kwargs = {**kwargs, "inplace": False}
    return args, kwargs

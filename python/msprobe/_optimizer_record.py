"""What the records of optimizers of both frameworks have in common: where the steps lie, when they are written, how they end."""

import json
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Optional, Union

FORMAT = 1


class StepRecord:
    """Hooks that write steps of optimizers below a directory; remove() takes them off.

    Attributes:
        path: The directory.
        rank: Of this process.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        rank: int,
        steps: Iterable[int],
        clip_grad: Optional[float],
        loss_scale: Optional[float],
    ) -> None:
        """Makes the directory; see the classes of the frameworks for the arguments.

        Raises:
            OSError: The directory cannot be created.
        """
        self.path = os.fspath(path)
        self.rank = rank
        self._steps = frozenset(steps)
        self._clip_grad, self._loss_scale = clip_grad, loss_scale
        self._handles: list = []
        os.makedirs(self.path, exist_ok=True)

    def remove(self) -> None:
        """Takes the hooks off; what is written stays."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> Any:
        """Returns itself: `with OptimizerRecord("record", optimizer):`."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Takes the hooks off."""
        self.remove()

    def wants(self, step: int) -> bool:
        """Tells whether a step is written.

        Args:
            step: The number of steps before it.

        Returns:
            True for the steps that the record was made for.
        """
        return step in self._steps

    def directory(self, number: int, step: int) -> str:
        """Returns the directory of a step.

        Args:
            number: Which optimizer of this process, from 0.
            step: The number of steps before it.

        Returns:
            A path below `path`; it need not exist.
        """
        return os.path.join(self.path, f"rank{self.rank}", f"optimizer{number}", f"step{step}")

    def _describe(self, kind: str, step: int, loss_scale: Any, found_inf: Any, groups: list, states: dict) -> dict:
        return {
            "format": FORMAT,
            "optimizer": kind,
            "step": step,
            "clip_grad": self._clip_grad,
            "loss_scale": loss_scale,
            "found_inf": found_inf,
            "groups": groups,
            "states": states,
        }

    def safely(self, write: Callable[[], None]) -> None:
        """Calls a function, so that no failure of the record ends a training: it ends the record, with a warning.

        Args:
            write: What writes a part of the record.
        """
        try:
            write()
        except (OSError, ValueError, TypeError, RuntimeError, AttributeError) as error:
            self.remove()
            warnings.warn(f"[msprobe] the record of the optimizer ends: {error}", RuntimeWarning, stacklevel=2)


def write_description(directory: str, description: dict) -> None:
    """Writes optimizer.json."""
    with open(os.path.join(directory, "optimizer.json"), "w", encoding="utf-8") as file:
        json.dump(description, file)


def plain(value: Any, tensor: type, item: Callable[[Any], Any]) -> Any:
    """A hyperparameter as JSON has it; None for what is none.

    Args:
        value: Of any type.
        tensor: The class of tensors.
        item: Gives the number in a tensor of one element, or None.

    Returns:
        A number, text, truth value, list of them or None.
    """
    if isinstance(value, tensor):
        return item(value)
    if isinstance(value, (tuple, list)):
        return [plain(v, tensor, item) for v in value]
    return value if isinstance(value, (bool, int, float, str)) else None

"""By which number a loss is multiplied before its backward pass: a loss scale, one over the micro steps, a weight.

The graph of the loss says it, whatever the script calls its variables.
"""

import weakref
from typing import Any, Optional

import torch

from ..hook_points import callback

_BY_A_NUMBER = frozenset(("MulBackward0", "DivBackward0", "ToCopyBackward0"))


class LossFactor:
    """Of one backward pass."""

    def __init__(self) -> None:
        """Knows no loss."""
        self._loss: Any = None  # weak reference to the loss that the script or the model gives
        self._at_root: Optional[torch.Tensor] = None
        self._at_loss: Optional[torch.Tensor] = None
        self._is_one = False
        self._handles: list = []

    def given(self, loss: Any) -> None:
        """This is the loss: what is done to it from here on is the factor."""
        self._loss = weakref.ref(loss) if isinstance(loss, torch.Tensor) else None

    def before(self, root: Any, is_scaled: bool) -> None:
        """A backward pass begins.

        Args:
            root: What backward() is called on.
            is_scaled: Whether a GradScaler has multiplied it last, which divides the gradients again.
        """
        self.forget()
        node = getattr(root, "grad_fn", None)
        if is_scaled and node is not None:
            node = _only_one_before(node)
        if node is None:
            return
        known = self._loss() if self._loss is not None else None
        end = None if known is None else known.grad_fn
        loss = node
        while loss is not end and type(loss).__name__ in _BY_A_NUMBER:
            before = _only_one_before(loss)
            if before is None:
                break
            loss = before
        if loss is node:
            self._is_one = True
            return

        def at_root(gradients: tuple) -> None:
            self._at_root = _copy(gradients)

        def at_loss(gradients: tuple) -> None:
            self._at_loss = _copy(gradients)

        self._handles = [node.register_prehook(callback(at_root)), loss.register_prehook(callback(at_loss))]

    def after(self) -> Optional[torch.Tensor]:
        """The factor of the pass that is over; None: it cannot be said."""
        at_root, at_loss, is_one = self._at_root, self._at_loss, self._is_one
        self.forget()
        if is_one:
            return torch.ones(())
        return None if at_root is None or at_loss is None else at_loss / at_root

    def forget(self) -> None:
        """What was seen of a pass goes, and its hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._at_root = self._at_loss = None
        self._is_one = False


def _only_one_before(node: Any) -> Any:
    """What a node was computed from, where that is one thing; else None."""
    found = [before for before, _ in node.next_functions if before is not None]
    return found[0] if len(found) == 1 else None


def _copy(gradients: tuple) -> Optional[torch.Tensor]:
    first = gradients[0] if gradients else None
    if not isinstance(first, torch.Tensor) or first.numel() != 1:
        return None
    return first.detach().reshape(()).to(torch.float32, copy=True)

"""Laws of clipping and of the loss scale: what the functions of PyTorch were asked for, against what the optimizer gets."""

from typing import Any

import torch
from torch.nn.utils import clip_grad

from ...hook_points import HookSet
from .scene import Scene, is_dtensor, norms_of

_SLACK = 1e-3
_UNCOVERED = 3  # looks
_SKIPPED = 8  # steps in a row
_INNER = (
    "_clip_grads_with_norm_",
    "clip_grad_norm_",
)  # the first is what clip_grad_norm_ calls, however it was imported


class ClipLaws:
    """Watches clip_grad_norm_ and GradScaler while it is installed."""

    def __init__(self, scene: Scene, guard: Any) -> None:
        """Watches nothing yet.

        Args:
            scene: The training.
            guard: Runs what must not stop the training.
        """
        self._scene, self._book, self._guard = scene, scene.book, guard
        self._hooks = HookSet()
        self._calls: list = []  # (limit, ids of parameters, backward passes at the call)
        self._stepped = False  # and no backward pass since
        self._uncovered = 0
        self._scaled = self._unscaled = self._in_scaler = False
        self._scale = 1.0
        self._skipped = 0
        self._covered: set = set()

    def install(self) -> None:
        """Begins."""
        if self._book.on("clip"):
            name = next(name for name in _INNER if hasattr(clip_grad, name))
            self._hooks.around(clip_grad, name, self._around_clip)
        if self._book.on("loss_scale", "clip"):
            scaler = getattr(torch.amp, "GradScaler", None)
            if scaler is None:
                return
            self._hooks.around(scaler, "scale", self._around_scale)
            self._hooks.around(scaler, "unscale_", self._around_unscale)
            self._hooks.around(scaler, "step", self._around_step)
            self._hooks.around(scaler, "update", self._around_update)

    def remove(self) -> None:
        """Ends; the functions are those of PyTorch again."""
        self._hooks.remove()

    # ---- clip_grad_norm_

    def _around_clip(self, original: Any, args: tuple, kwargs: dict) -> Any:
        result = original(*args, **kwargs)
        self._guard(lambda: self._clip(args, kwargs))
        return result

    def _clip(self, args: tuple, kwargs: dict) -> None:
        given = args[0] if args else kwargs.get("parameters")
        limit = float(args[1] if len(args) > 1 else kwargs.get("max_norm", 0.0))
        parameters = [given] if isinstance(given, torch.Tensor) else list(given or ())
        passes = self._scene.passes
        scene = self._scene
        is_late = self._stepped and not passes and not scene.is_sharded and scene.armed
        if is_late and not scene.unseen("clip", scene.unknown):
            self._book.broken("clip", "", "gradients are clipped after the optimizer has stepped")
        self._calls.append((limit, [id(p) for p in parameters], max(passes.values(), default=0)))
        scene.clipped = True
        is_scaled = self._scaled and not self._unscaled and self._scale > 1
        if is_scaled and not scene.unseen("loss_scale", scene.unknown):
            self._book.looked("loss_scale")
            self._book.broken(
                "loss_scale",
                "",
                f"gradients are clipped while they are multiplied by the loss scale {self._scale:g}: call "
                "scaler.unscale_(optimizer) before",
            )

    # ---- GradScaler

    def _around_scale(self, original: Any, args: tuple, kwargs: dict) -> Any:
        self._scaled, self._unscaled = args[0].is_enabled(), False
        result = original(*args, **kwargs)
        self._scale = float(args[0].get_scale()) if self._scaled and self._scene.armed else self._scale
        return result

    def _around_unscale(self, original: Any, args: tuple, kwargs: dict) -> Any:
        result = original(*args, **kwargs)
        self._unscaled = True
        return result

    def _around_step(self, original: Any, args: tuple, kwargs: dict) -> Any:
        scene = self._scene
        is_strange = scene.armed and args[0].is_enabled() and not self._scaled
        if is_strange and not scene.unseen("loss_scale", scene.unknown):
            self._book.broken(
                "loss_scale", "", "scaler.step() divides gradients by a loss scale that the loss was not multiplied by"
            )
        self._in_scaler, before, regions = True, scene.count, scene.unknown
        try:
            return original(*args, **kwargs)
        finally:
            self._in_scaler = False
            # The step of a compiled optimizer is not seen.
            is_left_out = scene.count == before and not scene.unseen("loss_scale", scene.unknown - regions)
            self._skipped = self._skipped + 1 if is_left_out else 0
            if self._skipped:
                scene.end_step()
            if args[0].is_enabled() and self._skipped >= _SKIPPED:
                self._book.looked("loss_scale")
                self._book.broken("loss_scale", "", f"{_SKIPPED} steps in a row are left out by the loss scaler")

    def _around_update(self, original: Any, args: tuple, kwargs: dict) -> Any:
        scaler = args[0]
        if not self._scene.armed or not scaler.is_enabled():
            return original(*args, **kwargs)
        before, skipped = float(scaler.get_scale()), self._skipped
        result = original(*args, **kwargs)
        self._book.looked("loss_scale")
        if skipped and float(scaler.get_scale()) >= before and before > 1:
            self._book.broken("loss_scale", "", f"the loss scale stays at {before:g} after an overflow")
        return result

    # ---- the step

    def before_step(self) -> None:
        """Right before the optimizer steps."""
        self._loss_scale()
        scene, book = self._scene, self._book
        limit = book.config.clip_norm
        if not book.on("clip") or (limit is None and not self._calls):
            if book.on("clip"):
                book.not_checked("clip", "nothing is clipped by clip_grad_norm_, and laws has no clip_norm")
            return
        if scene.is_sharded or scene.has_masters:
            book.not_checked("clip", "each rank has a part of the gradients only")
            return
        gradients = {id(p): scene.gradient(p) for p in scene.trained().values()}
        there = {key: g for key, g in gradients.items() if g is not None and not is_dtensor(g)}
        squares = dict(zip(there, (norm**2 for norm in norms_of(list(there.values())))))
        book.looked("clip")
        if limit is not None:
            self._hold(sum(squares.values()) ** 0.5, limit, "")
        for number, (bound, keys, passes) in enumerate(self._calls):
            own = [squares[key] for key in keys if key in squares]
            if not keys or (not own and squares):
                book.broken(
                    "clip",
                    "",
                    "clip_grad_norm_ got no gradient: an iterator of parameters is used up, or others are given",
                )
                continue
            if any(set(keys) & set(later) for _, later, _ in self._calls[number + 1 :]):
                continue
            now = max(scene.passes.values(), default=0)
            late = f"; it was clipped after {passes} of {now} micro steps" if passes < now else ""
            self._hold(sum(own) ** 0.5, bound, late)
        self._whole(squares)

    def _hold(self, norm: float, limit: float, more: str) -> None:
        if norm > limit * (1 + _SLACK):
            self._book.broken(
                "clip", "", f"the optimizer gets gradients of the norm {norm:.6g}, clipped to {limit:.6g} at most{more}"
            )

    def _whole(self, squares: dict) -> None:
        """Whether clipping covers all that the optimizer uses."""
        covered = {key for _, keys, _ in self._calls for key in keys}
        if not covered or self._scene.unseen("clip", self._scene.unknown):
            return
        out = [key for key, square in squares.items() if key not in covered and square > 0]
        self._uncovered = self._uncovered + 1 if out else 0
        if self._uncovered >= _UNCOVERED:
            names = [self._scene.names[key] for key in out]
            self._book.broken("clip", names, "the optimizer uses its gradient, and clip_grad_norm_ is not given it")

    def _loss_scale(self) -> None:
        if not self._scaled:
            return
        if self._scene.unseen("loss_scale", self._scene.unknown):
            return
        self._book.looked("loss_scale")
        if not self._in_scaler and not self._unscaled and self._scale > 1:
            self._book.broken(
                "loss_scale",
                "",
                f"optimizer.step() is called with gradients that are multiplied by the loss scale {self._scale:g}: call "
                "scaler.step(optimizer)",
            )

    def after_step(self) -> None:
        """Right after it."""
        self._calls.clear()
        self._stepped = True
        self._scaled = self._unscaled = False

"""All laws of one training: when they look, and what becomes of what they find."""

from typing import Any, Optional

import torch

from ...._monitor.laws import LawBook
from ... import regions
from ...hook_points import callback
from ..optimizers import OptimizerView
from .clip_laws import ClipLaws
from .gradient_laws import GradientLaws
from .module_laws import ModuleLaws
from .parameter_laws import ParameterLaws
from .replica_laws import ReplicaLaws
from .scene import Scene
from .update_laws import UpdateLaws


class LawWatch:
    """The laws of one model and its optimizer."""

    def __init__(
        self,
        models: list,
        view: OptimizerView,
        micro_batches: int,
        main_grad: bool,
        book: LawBook,
        directory: str,
        guard: Any,
        groups: tuple = (None, None),
    ) -> None:
        """Hooks the model.

        Args:
            models: The chunks of the model.
            view: Of the optimizer.
            micro_batches: Backward passes of a step.
            main_grad: Whether the trainer keeps gradients in main_grad.
            book: Where laws are written down.
            directory: Of this rank's files.
            guard: Runs what must not stop the training.
            groups: Ranks of data and of tensor parallelism, where they are known.
        """
        self.scene = scene = Scene(models, view, micro_batches, main_grad, book)
        self._book, self._guard = book, guard
        self._parameters = ParameterLaws(scene)
        self._gradients = GradientLaws(scene, guard)
        self._clip = ClipLaws(scene, guard)
        self._updates = UpdateLaws(scene)
        self._modules = ModuleLaws(scene, guard, self.loss)
        self._replicas: Optional[ReplicaLaws] = None
        if book.on("replicas", "collectives", "batch_repeats"):
            self._replicas = ReplicaLaws(scene, *groups, directory)
        self._gradients.install()
        self._clip.install()
        self._modules.install()
        self._unfollow = regions.follow(scene.region)
        scene.armed = book.config.is_checked(0)

    def remove(self) -> None:
        """Removes all hooks."""
        self.scene.armed = False
        self._unfollow()
        for laws in (self._gradients, self._clip, self._modules):
            laws.remove()

    def watch_ema(self, model: Any, decay: Optional[float]) -> None:
        """Holds an averaged copy against the parameters."""
        self._parameters.watch_ema(model, decay)

    def loss(self, loss: Any) -> None:
        """The loss of a micro step, before its backward pass."""
        scene = self.scene
        if not scene.armed or not isinstance(loss, torch.Tensor):
            return
        self._parameters.loss(loss)
        scene.loss_is_product = type(loss.grad_fn).__name__ in ("DivBackward0", "MulBackward0")
        if loss.requires_grad and loss.numel() == 1:

            def arrived(gradient: torch.Tensor) -> None:
                if scene.armed:
                    self._guard(lambda: setattr(scene, "loss_factor", float(gradient)))

            loss.register_hook(callback(arrived))

    def before_step(self, step: int) -> None:
        """Right before the optimizer steps."""
        self._book.step = step
        self.scene.look_for_missed()
        self._updates.every_step()
        if not self.scene.armed:
            return
        with torch.no_grad():
            self._gradients.before_step()
            self._clip.before_step()
            self._parameters.before_step()
            self._updates.before_step()
            batches = self._modules.batches()
            self._modules.before_step()
            if self._replicas is not None:
                self._replicas.before_step(batches)

    def after_step(self) -> list:
        """Right after it.

        Returns:
            The events of laws that broke.
        """
        scene = self.scene
        if scene.armed:
            with torch.no_grad():
                self._updates.after_step()
                self._parameters.after_step()
                if self._replicas is not None:
                    self._replicas.after_step()
        self._gradients.after_step()
        self._clip.after_step()
        self._modules.end_step()
        scene.end_step()
        scene.remember_versions()
        scene.count += 1
        scene.armed = self._book.config.is_checked(scene.count)
        self._book.write()
        return self._book.events()

    def end(self) -> None:
        """The last look at what other ranks have written."""
        if self._replicas is not None:
            self._replicas.end()

"""Laws of gradients: present, of this step, the sum of what came in, begun at zero, finite, none for padding."""

from typing import Any, Optional

import torch

from ...hook_points import HookSet
from .scene import Scene, bit_sums, is_dtensor, is_near, norms_of, sample_of

_LAWS = ("gradients_present", "stale_gradient", "accumulation", "zero_grad", "finite_step", "padding", "loss_scale")
_NEVER = 5  # looks without a gradient that say there is none
_LOST = 3  # after so many with one
_SAME = 2
_SHARE = 0.5  # of the parameters that show it


class _Of:
    """What is known of the gradient of one parameter."""

    def __init__(self) -> None:
        self.total = 0  # backward passes that reached it, ever
        self.incoming: Optional[torch.Tensor] = None
        self.carry: Optional[torch.Tensor] = None  # what the last step left
        self.contributing = 0  # passes of this step that are in the gradient
        self.has_carry = False  # so is what the last step left
        self.silent = self.had = self.same = 0
        self.sum: Optional[int] = None


class GradientLaws:
    """Hooks on the parameters, and a look at their gradients before each step."""

    def __init__(self, scene: Scene, guard: Any) -> None:
        """Hooks nothing yet.

        Args:
            scene: The training.
            guard: Runs what must not stop the training.
        """
        self._scene, self._book, self._guard = scene, scene.book, guard
        self._of: dict = {name: _Of() for name in scene.trained()}
        self._hooks = HookSet()
        self._counts: list = []  # of backward passes

    def install(self) -> None:
        """Begins."""
        scene, book = self._scene, self._book
        if not book.on(*_LAWS, "collectives", "clip"):
            return
        if scene.is_sharded or scene.has_masters or scene.main_grad:
            why = "gradients of this wrapper do not come by autograd's accumulation into the parameter"
            for law in ("accumulation", "zero_grad"):
                book.not_checked(law, why)
            if scene.is_sharded or scene.has_masters:
                return
        for name, parameter in scene.trained().items():
            if parameter.is_sparse or not hasattr(parameter, "register_post_accumulate_grad_hook"):
                continue
            self._hooks.on_gradient(parameter, self._incoming(name))
            self._hooks.on_accumulated(parameter, self._accumulated(name))

    def remove(self) -> None:
        """Ends."""
        self._hooks.remove()

    # ---- in the backward pass

    def _incoming(self, name: str) -> Any:
        of, scene = self._of[name], self._scene

        def hook(gradient: torch.Tensor) -> None:
            of.incoming = None
            if scene.armed and gradient.layout is torch.strided:
                self._guard(lambda: setattr(of, "incoming", scene.sample(gradient)))

        return hook

    def _accumulated(self, name: str) -> Any:
        of, scene = self._of[name], self._scene

        def hook(parameter: Any) -> None:
            of.total += 1
            scene.passes[name] = scene.passes.get(name, 0) + 1
            if scene.armed:
                self._guard(lambda: self._look(name, of, parameter))

        return hook

    def _look(self, name: str, of: _Of, parameter: Any) -> None:
        gradient = self._scene.gradient(parameter)
        if gradient is None:
            return
        now, incoming, before = self._scene.sample(gradient), of.incoming, self._scene.accumulated.get(name)
        self._scene.accumulated[name] = (now, gradient.dtype)
        of.incoming = None
        first = self._scene.passes[name] == 1
        if first:
            of.contributing, of.has_carry = 0, False
        of.contributing += 1
        if incoming is None or incoming.shape != now.shape or not torch.isfinite(now).all():
            return
        earlier = of.carry if first else (before[0] if before is not None else None)
        if earlier is None or not bool(earlier.any()):
            if first and of.carry is not None:
                self._book.looked("zero_grad")
            return
        size = now.abs() + incoming.abs() + earlier.abs()
        has_sum = is_near(now, earlier + incoming, size, gradient.dtype)
        has_dropped = is_near(now, incoming, size, gradient.dtype)
        self._book.looked("zero_grad" if first else "accumulation")
        if first:
            of.has_carry = has_sum and not has_dropped
        elif has_dropped and not has_sum:  # cleared in between
            of.contributing, of.has_carry = 1, False

    # ---- at the step

    def before_step(self) -> None:
        """Right before the optimizer steps."""
        if not self._hooks and not self._scene.is_sharded and not self._scene.has_masters:
            return
        scene, book = self._scene, self._book
        trained = {name: p for name, p in scene.trained().items() if name in self._of}
        gradients = {name: scene.gradient(p) for name, p in trained.items()}
        if scene.has_masters:
            for law in ("gradients_present", "stale_gradient", "finite_step"):
                book.not_checked(law, "the optimizer keeps gradients of its own")
            return
        there = {name: g for name, g in gradients.items() if g is not None and g.numel()}
        norms = dict(zip(there, norms_of(list(there.values()))))
        self._finite(norms)
        self._present(trained, norms)
        self._stale(there, norms)
        self._sums(len(there))
        self._count_passes()
        self._scaled(there)
        self._padding(trained)

    def _finite(self, norms: dict) -> None:
        self._book.looked("finite_step", len(norms))
        bad = [name for name, norm in norms.items() if not abs(norm) < float("inf")]
        if bad:
            self._book.broken(
                "finite_step", bad, "the optimizer steps with a gradient that is NaN or infinite: leave the step out"
            )

    def _present(self, trained: dict, norms: dict) -> None:
        scene, book = self._scene, self._book
        cleared, lost, never = [], [], []
        for name in trained:
            of = self._of[name]
            if norms.get(name, 0.0) != 0:
                of.silent, of.had = 0, of.had + 1
                continue
            seen = scene.accumulated.get(name)
            if seen is not None and scene.passes.get(name) and bool(seen[0].any()):
                cleared.append(name)
            of.silent += 1
            if ".experts." in name:
                continue  # which the law of experts looks at
            if of.had == 0 and of.silent >= _NEVER:
                never.append(name)
            elif of.had >= _LOST and of.silent >= _LOST and id(scene.owner[name]) in scene.ran:
                lost.append(name)
        book.looked("gradients_present", len(trained))
        if cleared:
            book.broken(
                "gradients_present",
                cleared,
                "the backward pass gave a gradient, and the step has none: gradients are cleared between the two",
            )
        if lost:
            book.broken(
                "gradients_present", lost, "no gradient comes any more, though it requires one and its module runs"
            )
        used, unused = scene.split_used(never, [n for n in trained if self._of[n].had])
        if used:
            book.broken(
                "gradients_present",
                used,
                f"no gradient in {_NEVER} steps, though its module's output is used: look for detach(), no_grad() or an "
                "output replaced by a constant",
            )
        for name in unused:
            book.note("gradients_present", name, "no gradient: nothing uses its module's output; freeze it")

    def _stale(self, there: dict, norms: dict) -> None:
        scene, book = self._scene, self._book
        if not book.on("stale_gradient"):
            return
        book.looked("stale_gradient", len(there))
        left, same = [], []
        for (name, _), total in zip(there.items(), bit_sums(list(there.values()))):
            of = self._of[name]
            if norms[name] == 0:
                of.sum, of.same = None, 0
                continue
            of.same = of.same + 1 if of.sum == total else 0
            of.sum = total
            if self._hooks and scene.count > 0 and of.total and not scene.passes.get(name):
                left.append(name)
            elif of.same >= _SAME:
                same.append(name)
        if left and not scene.unseen("stale_gradient", scene.unknown):
            book.broken(
                "stale_gradient",
                left,
                "the optimizer uses a gradient of an earlier step: no backward pass has reached it since",
            )
        if same:
            book.broken("stale_gradient", same, f"the gradient has had the same bits for {_SAME + 1} steps")

    def _sums(self, count: int) -> None:
        scene, declared = self._scene, self._scene.micro_batches
        reached = {name: self._of[name] for name in scene.passes if name in self._of}
        carried = [name for name, of in reached.items() if of.has_carry]
        dropped = [name for name, of in reached.items() if of.contributing < declared <= scene.passes[name]]
        if carried and len(carried) >= _SHARE * count:
            self._book.broken(
                "zero_grad",
                "",
                "gradients begin with those of the step before: zero_grad() is missing or comes too early",
            )
        if dropped and declared > 1 and len(dropped) >= _SHARE * count:
            self._book.broken(
                "accumulation",
                "",
                "a micro step replaces the gradient of the one before: zero_grad() is called between micro steps",
            )

    def _count_passes(self) -> None:
        scene, declared = self._scene, self._scene.micro_batches
        if declared < 2 or not self._hooks or not scene.passes or scene.unseen("accumulation", scene.unknown):
            return
        self._book.looked("accumulation")
        seen = max(scene.passes.values())
        self._counts = last = [*self._counts[-2:], seen]
        if len(last) == 3 and len(set(last)) == 1 and seen != declared:
            self._book.broken(
                "accumulation", "", f"{seen} backward passes of a step, and {declared} were declared as grad_acc_steps"
            )

    def _scaled(self, there: dict) -> None:
        """What the gradients are of the loss: loss scale over micro steps, times what was done between backward and step."""
        scene, book = self._scene, self._book
        if scene.loss_factor is None:
            why = "the model returns no loss: call record_loss(loss) before loss.backward()"
            if scene.micro_batches > 1:
                book.not_checked("accumulation", why + " to see whether it is divided by the micro steps")
            book.not_checked("loss_scale", why)
            return
        if scene.is_sharded or scene.has_masters:
            return
        ratios = []
        for name, gradient in there.items():
            known = scene.accumulated.get(name)
            if known is None or not scene.passes.get(name):
                continue
            power = float((known[0] ** 2).sum())
            if power > 0:
                ratios.append(float((scene.sample(gradient) * known[0]).sum()) / power)
        if not ratios:
            return
        ratios.sort()
        after = ratios[len(ratios) // 2]
        total = scene.loss_factor * after * scene.micro_batches
        book.looked("loss_scale")
        several = scene.several_ranks
        if scene.micro_batches > 1 and scene.loss_is_product:
            book.not_checked("accumulation", "the loss that was given may be divided by the micro steps already")
        elif scene.micro_batches > 1:
            book.looked("accumulation")
            if abs(scene.loss_factor - 1) < 1e-6 and abs(after - 1) < 1e-3 and not several and not scene.clipped:
                book.broken(
                    "accumulation",
                    "",
                    f"the gradient is the sum over {scene.micro_batches} micro steps, and neither the loss nor the gradient "
                    "is divided by them",
                )
                return
        if (
            (total > 1.9 and total > 1.01 * scene.micro_batches and not several)
            or 0 < total < 1e-4
            and not scene.clipped
            and not scene.unseen("loss_scale", scene.unknown)
        ):
            book.broken(
                "loss_scale",
                "",
                f"gradients at the step are {total:.4g} times those of the loss: a loss scale is not taken off, or taken off "
                "twice",
            )

    def _padding(self, trained: dict) -> None:
        scene, book = self._scene, self._book
        if not book.on("padding"):
            return
        for name, parameter in trained.items():
            module = scene.owner[name]
            row = getattr(module, "padding_idx", None)
            if not isinstance(row, int) or parameter.dim() != 2 or not name.endswith("weight"):
                continue
            users = sum(p is parameter for p in scene.parameters.values())
            if is_dtensor(parameter) or users > 1:
                why = "it is sharded" if is_dtensor(parameter) else "it is tied to another weight, which gives it one"
                book.not_checked("padding", f"{name}: {why}")
                continue
            gradient = scene.gradient(parameter)
            if gradient is None or gradient.shape != parameter.shape:
                continue
            book.looked("padding")
            if bool(sample_of(gradient[row], 4096).any()):
                book.broken(
                    "padding",
                    name,
                    f"row {row}, which is padding, gets a gradient: padding_idx is not given to the lookup",
                )

    def after_step(self) -> None:
        """Right after it."""
        if not self._scene.armed:
            for of in self._of.values():
                of.carry = None
            return
        for name, parameter in self._scene.trained().items():
            of = self._of.get(name)
            if of is None or not self._hooks:
                continue
            gradient = self._scene.gradient(parameter)
            of.carry = self._scene.sample(gradient) if gradient is not None else None

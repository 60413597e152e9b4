"""Laws of modules: training mode, running statistics, batches that differ, recomputed forwards, experts."""

from typing import Any, Optional

import torch

from ...hook_points import HookSet
from ..inputs import checksum, loss_of, tensors_of
from ..values import first_tensor, local_part
from .scene import Scene, bit_sums, is_dtensor, norms_of, sample_of

_REPEATS = 2  # steps
_PERIOD = 8  # batches in the order of an earlier epoch
_STILL = 2  # looks at running statistics
_DEAD = 10
_TWINS = 5
_RECOMPUTE = 1e-3  # relative
_MOST_KEPT = 64  # outputs of a block


class ModuleLaws:
    """Hooks on modules, and a look at them before each step."""

    def __init__(self, scene: Scene, guard: Any, on_loss: Any) -> None:
        """Hooks nothing yet.

        Args:
            scene: The training.
            guard: Runs what must not stop the training.
            on_loss: Called with the loss that a model returns.
        """
        self._scene, self._book, self._guard, self._on_loss = scene, scene.book, guard, on_loss
        self._hooks = HookSet()
        self._modes: list = []  # of the forward passes of this step
        self._was_training = False
        self._rates: dict = {}  # dropout -> p
        self._batches: list = []  # of this step
        self._last: list = []
        self._seen: dict = {}  # batch -> place
        self._place = 0
        self._in_order = (0, 0)  # (period, batches)
        self._same_step = self._same_micro = 0
        self._statistics: dict = {}
        self._kept: dict = {}  # block -> samples of its outputs
        self._recomputed: dict = {}
        self._dead: dict = {}
        self._twins: dict = {}
        self._outputs: dict = {}  # address of a module's output -> module
        self._norms = [(n, m) for n, m in scene.named_modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]

    def install(self) -> None:
        """Begins."""
        book = self._book
        for _, model in self._scene.named_models():
            before, after = self._around_model(model)
            self._hooks.before(model, before, kwargs=True)
            self._hooks.after(model, after, kwargs=True, always=True)
        if not book.on("gradients_present", "recompute", "batch_norm"):
            return
        blocks = _blocks(self._scene)
        for _, module in self._scene.named_modules():
            if module in self._scene.models:
                continue
            is_block = id(module) in blocks and book.on("recompute")
            self._hooks.after(module, self._after_module(module, blocks.get(id(module)) if is_block else None))

    def remove(self) -> None:
        """Ends."""
        self._hooks.remove()

    # ---- forward passes

    def _around_model(self, model: Any) -> tuple:
        """Hooks. Functions and no methods, which deepcopy() would copy with all that they know; a copy is not looked at."""
        scene = self._scene

        def before(this: Any, args: tuple, kwargs: dict) -> None:
            scene.inside += this is model
            if scene.armed and this is model and torch.is_grad_enabled() and not _in_backward():
                self._guard(lambda: self._begin(model, args, kwargs))

        def after(this: Any, args: tuple, kwargs: dict, output: Any) -> None:
            scene.inside = max(scene.inside - (this is model), 0)
            if scene.armed and this is model and torch.is_grad_enabled():
                loss = loss_of(output)
                if loss is not None and loss.requires_grad:
                    self._guard(lambda: self._on_loss(loss))

        return before, after

    def _begin(self, model: Any, args: tuple, kwargs: dict) -> None:
        self._modes.append(model.training)
        self._outputs.clear()
        if model is not self._scene.models[0] or not self._book.on("batch_repeats"):
            return
        given = [tensor for _, tensor in tensors_of(args, kwargs) if tensor.device.type != "meta"]
        with torch.no_grad():
            self._batches.append(tuple(int(checksum(local_part(tensor))) for tensor in given))

    def _after_module(self, module: Any, block: Optional[str]) -> Any:
        scene = self._scene

        def hook(this: Any, args: tuple, output: Any) -> None:
            if not scene.armed or this is not module or not module.training and not torch.is_grad_enabled():
                return
            if _in_backward():
                if block is not None:
                    self._guard(lambda: self._again(block, output))
                return
            scene.ran.add(id(module))
            self._guard(lambda: self._passed(module, args, output))
            if block is not None and torch.is_tensor(found := first_tensor(output)):
                self._guard(lambda: self._keep(block, found))

        return hook

    def _passed(self, module: Any, args: tuple, output: Any) -> None:
        """Whose output goes on to which modules: by the address of the memory."""
        for value in args:
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, torch.Tensor) and tensor.numel():
                    maker = self._outputs.get(_address(tensor))
                    if maker is not None and maker is not module:
                        self._scene.passed_on.add(id(maker))
        found = first_tensor(output)
        if found is not None and found.numel():
            self._outputs[_address(found)] = module

    def _keep(self, block: str, output: torch.Tensor) -> None:
        kept = self._kept.setdefault(block, [])
        if len(kept) < _MOST_KEPT and output.is_floating_point():
            kept.append(self._scene.sample(output))

    def _again(self, block: str, output: Any) -> None:
        found = first_tensor(output)
        kept = self._kept.get(block)
        if found is None or not kept or self._scene.unseen("recompute", self._scene.compiled):
            return
        now = self._scene.sample(found)
        same = [before for before in kept if before.shape == now.shape]
        if not same:
            return
        self._book.looked("recompute")
        size = float(torch.linalg.vector_norm(now))
        nearest = min(float(torch.linalg.vector_norm(now - before)) for before in same)
        if nearest > _RECOMPUTE * size:
            self._book.broken(
                "recompute",
                block,
                f"its forward, computed again in the backward pass, differs by {nearest / max(size, 1e-300):.2g}: dropout without "
                "the state of its generator, or another mode or type",
            )

    # ---- the step

    def batches(self) -> list:
        """What the forward passes of this step were given, each a tuple of checksums."""
        return list(self._batches)

    def before_step(self) -> None:
        """Right before the optimizer steps."""
        self._mode()
        self._repeats()
        if self._book.on("batch_norm"):
            self._running_statistics()
        if self._book.on("experts"):
            self._experts()

    def end_step(self) -> None:
        """A step is over."""
        self._modes.clear()
        self._batches.clear()
        self._kept.clear()
        self._outputs.clear()

    def _mode(self) -> None:
        book, scene = self._book, self._scene
        if not book.on("train_mode") or not self._modes or scene.unseen("train_mode", scene.outside):
            return
        random = [(name, m) for name, m in scene.named_modules() if _rate(m) > 0]
        matters = random or self._norms
        if not matters:
            book.not_checked("train_mode", "no module does anything else in training mode")
            return
        book.looked("train_mode")
        if not any(self._modes):
            how = (
                "it was in training mode before: call train() after the evaluation"
                if self._was_training
                else "call train()"
            )
            book.broken("train_mode", "", f"the step trains a model in evaluation mode: {how}")
            return
        if not all(self._modes):
            book.note("train_mode", "", "some forward passes of a step are in evaluation mode")
        self._was_training = True
        still = []
        for name, module in random:
            if not module.training and self._trains_around(name):
                still.append(name)
        if still:
            book.broken("train_mode", still, "dropout is in evaluation mode, and the parameters beside it are trained")
        off = [name for name, module in scene.named_modules() if self._rates.get(name, 0.0) > 0 and _rate(module) == 0]
        if off:
            book.broken("train_mode", off, f"its dropout falls from {self._rates[off[0]]:g} to 0")
        self._rates.update({name: _rate(module) for name, module in random})

    def _trains_around(self, name: str) -> bool:
        parent = name.rpartition(".")[0]
        own = [p for n, p in self._scene.parameters.items() if n.startswith(f"{parent}." if parent else "")]
        return any(p.requires_grad for p in own)

    def _repeats(self) -> None:
        book = self._book
        if not book.on("batch_repeats"):
            return
        if self._scene.unseen("batch_repeats", self._scene.outside):
            self._last = []
            return
        now, before, self._last = self._batches, self._last, list(self._batches)
        if not self._modes:  # of the first step, in whose forward we came, or of one without any
            return
        if not now or not all(now):
            book.not_checked("batch_repeats", "no tensor was found in what the model is given")
            return
        book.looked("batch_repeats")
        self._same_step = self._same_step + 1 if now == before else 0
        if self._same_step >= _REPEATS:
            book.broken(
                "batch_repeats", "", f"the batch was the same each of {_REPEATS + 1} times that it was looked at"
            )
        self._same_micro = self._same_micro + 1 if len(now) > 1 and len(set(now)) == 1 else 0
        if self._same_micro >= _REPEATS:
            book.broken("batch_repeats", "", f"the {len(now)} micro steps of a step have the same batch")
        if not self._same_step and not self._same_micro:
            self._order(now)

    def _order(self, batches: list) -> None:
        for batch in batches:
            place, self._seen[batch] = self._seen.get(batch), self._place
            period = self._place - place if place is not None else 0
            self._place += 1
            last, count = self._in_order
            self._in_order = (period, count + 1 if period and period == last else int(period > 1))
        period, count = self._in_order
        if period > 1 and count >= max(_PERIOD, period):
            self._book.broken(
                "batch_repeats",
                "",
                f"batches come in the order in which they came {period} batches before: the data are not shuffled anew "
                "(sampler.set_epoch(), shuffle, a seed at each epoch)",
            )
        if len(self._seen) > 4096:
            self._seen.clear()

    def _running_statistics(self) -> None:
        book = self._book
        for name, module in self._norms:
            if not module.track_running_stats or module.running_mean is None:
                continue
            ran = id(module) in self._scene.ran or module in self._scene.models
            trained = module.weight is not None and module.weight.requires_grad
            if not ran or not any(self._modes):
                continue
            if not module.training:
                if trained:
                    book.looked("batch_norm")
                    book.broken(
                        "batch_norm",
                        name,
                        "it normalizes with its running statistics while its weight is trained: it is in "
                        "evaluation mode",
                    )
                continue
            book.looked("batch_norm")
            total = bit_sums([module.running_mean, module.running_var])
            before, still = self._statistics.get(name, (None, 0))
            still = still + 1 if before == total else 0
            self._statistics[name] = (total, still)
            bad = not bool(torch.isfinite(module.running_var).all()) or bool((module.running_var < 0).any())
            if still >= _STILL:
                book.broken("batch_norm", name, "its running statistics do not move in training mode")
            elif bad:
                book.broken("batch_norm", name, "its running variance is negative, NaN or infinite")

    # ---- experts

    def _experts(self) -> None:
        scene, book = self._scene, self._book
        found = False
        for name, module in scene.named_modules():
            if (
                isinstance(module, torch.nn.ModuleList)
                and len(module) > 1
                and "expert" in name.rpartition(".")[2].lower()
            ):
                members = [list(expert.parameters()) for expert in module]
                shapes = {tuple(p.shape for p in member) for member in members}
                if len(shapes) == 1 and members[0]:
                    found = True
                    self._of_list(name, members)
        for name, parameter in scene.trained().items():
            parts = name.lower().split(".")
            if parameter.dim() == 3 and parameter.shape[0] > 1 and any("expert" in part for part in parts):
                if is_dtensor(parameter):
                    book.not_checked("experts", "experts are spread over ranks")
                    continue
                found = True
                gradient = scene.gradient(parameter)
                rows = [sample_of(row, 4096) for row in parameter]
                busy = [
                    gradient is not None and bool(local_part(row).any())
                    for row in (gradient if gradient is not None else parameter)
                ]
                self._judge(name, busy, [hash(tuple(row.tolist())) for row in rows])
        if not found:
            book.not_checked("experts", "the model has no experts")

    def _of_list(self, name: str, members: list) -> None:
        scene = self._scene
        busy, sums = [], []
        for member in members:
            gradients = [g for p in member if (g := scene.gradient(p)) is not None]
            busy.append(any(norms_of(gradients)) if gradients else False)
            sums.append(tuple(bit_sums([p for p in member if p.numel()])))
        self._judge(name, busy, sums)

    def _judge(self, name: str, busy: list, sums: list) -> None:
        book = self._book
        book.looked("experts", len(busy))
        dead = []
        for number, has_gradient in enumerate(busy):
            key = (name, number)
            self._dead[key] = 0 if has_gradient or not any(busy) else self._dead.get(key, 0) + 1
            if self._dead[key] >= _DEAD:
                dead.append(f"{name}.{number}")
        if dead:
            book.broken(
                "experts", dead, f"the expert has had no gradient for {_DEAD} looks: the router sends it no token"
            )
        by_sum: dict = {}
        for number, total in enumerate(sums):
            by_sum.setdefault(total, []).append(number)
        twins = [f"{name}.{number}" for numbers in by_sum.values() if len(numbers) > 1 for number in numbers]
        self._twins[name] = self._twins.get(name, 0) + 1 if twins else 0
        if self._twins[name] >= _TWINS:
            book.broken("experts", twins, f"experts have the same parameters after {_TWINS} looks: they are one expert")


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def _address(tensor: torch.Tensor) -> tuple:
    plain = local_part(tensor.detach())
    return plain.device, plain.data_ptr()


def _rate(module: Any) -> float:
    """The share that a module drops in training mode."""
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        return float(module.p)
    rate = getattr(module, "dropout", 0.0) if isinstance(module, torch.nn.MultiheadAttention) else 0.0
    return float(rate) if isinstance(rate, (int, float)) else 0.0


def _blocks(scene: Scene) -> dict:
    """Ids of modules -> name: members of lists, and modules without parts.

    A recomputation ends at the last tensor that is needed, often before the end of a member.
    """
    found: dict = {}
    for name, module in scene.named_modules():
        if next(module.children(), None) is None:
            found.setdefault(id(module), name)
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
            found.update({id(child): f"{name}.{key}" if name else key for key, child in module.named_children()})
    return found

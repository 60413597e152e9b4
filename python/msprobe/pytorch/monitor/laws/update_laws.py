"""Laws of what the optimizer does: its update computed again in float64, parameters that stay, learning rates."""

import json
from typing import Any, Optional

import torch

from .... import _core
from ...living import living
from ..values import local_part
from .scene import Scene, bit_sums, is_dtensor, rounding

_MOST_WHOLE = 1 << 16  # elements of a matrix that rules for whole matrices are computed for
_WHOLE = ("muon", "adafactor")
_AT_ONCE = 16  # parameters of a step that are computed again
_ELEMENTS = 512  # of each
_STAYS = 3
_JUMP = 3.0
_SAME_HEIGHT = 1.05  # as a rate that there was: a schedule with restarts
_WARM = 5
_ZERO_RATE = 20
_SEARCHED = (0, 2)  # steps at which objects of the process are searched for optimizers and schedulers
_FALL, _CLIMB, _SOON = 2.0, 1.4, 50


class UpdateLaws:
    """Looks around each step of the optimizer."""

    def __init__(self, scene: Scene) -> None:
        """Has seen no step yet.

        Args:
            scene: The training.
        """
        self._scene, self._book = scene, scene.book
        self._next = 0
        self._open: list = []  # (name, parameter, group, tensors before)
        self._sums: dict = {}
        self._same: dict = {}
        self._frozen: dict = {}
        self._moving: list = []
        self._rates: list = []
        self._zero_rate = 0
        self._highest = 0.0  # of all rates there were
        self._optimizers: list = []
        self._schedulers: list = []
        self._advances: list = []
        self._strangers: dict = {}  # scheduler -> where it was
        self._looked_around = False
        self._fell: Optional[tuple] = None

    def before_step(self) -> None:
        """Right before the optimizer steps."""
        if self._scene.count in _SEARCHED:
            self._optimizers, self._schedulers = living(torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)
        self._look_around()
        self._schedule()
        self._open.clear()
        if self._book.on("update"):
            self._keep()

    # ---- the update, again in float64

    def _keep(self) -> None:
        scene, book = self._scene, self._book
        optimizer = scene.torch_optimizer
        kind = type(optimizer).__name__
        if scene.has_masters or not hasattr(optimizer, "param_groups"):
            book.not_checked("update", f"{type(scene.view.optimizer).__name__} updates copies of its own")
            return
        if not _core.is_known_optimizer(kind):
            book.not_checked("update", f"the rule of {kind} is not known")
            return
        if getattr(optimizer, "grad_scale", None) is not None:
            book.not_checked("update", "the optimizer takes off the loss scale itself")
            return
        wanted = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = scene.names.get(id(parameter))
                gradient = scene.gradient(parameter)
                if name is None or gradient is None or not book.wants(name):
                    continue
                whole = any(word in kind.lower() for word in _WHOLE)
                if whole and (gradient.numel() > _MOST_WHOLE or is_dtensor(parameter)):
                    continue
                wanted.append((name, parameter, group, whole))
        for i in range(min(_AT_ONCE, len(wanted))):
            name, parameter, group, whole = wanted[(self._next + i) % len(wanted)]
            tensors = {"weight": _copy(parameter, whole), "grad": _copy(scene.gradient(parameter), whole)}
            self._open.append(
                (name, parameter, _plain_group(group), {**tensors, **self._states(parameter, whole)}, whole)
            )
        self._next = (self._next + _AT_ONCE) % max(len(wanted), 1)

    def _states(self, parameter: Any, whole: bool) -> dict:
        state = self._scene.torch_optimizer.state.get(parameter, {})
        count = local_part(parameter.detach()).numel()
        return {
            f"state/{key}": _copy(value, whole or local_part(value).numel() != count)
            for key, value in state.items()
            if isinstance(value, torch.Tensor)
        }

    def _compare(self) -> None:
        scene = self._scene
        optimizer = scene.torch_optimizer
        for name, parameter, group, before, whole in self._open:
            after = {"weight": _copy(parameter, whole), **self._states(parameter, whole)}
            numbers = optimizer.state.get(parameter, {}).get("step")
            description = {
                "step": scene.count,
                "optimizer": type(optimizer).__name__,
                "groups": [{**group, "weights": [name]}],
                "states": {name: {"step": numbers - 1}} if isinstance(numbers, (int, float)) else {},
            }
            given = [(_tag(key, name), False, tensor) for key, tensor in before.items()]
            given += [(_tag(key, name), True, tensor) for key, tensor in after.items()]
            found = json.loads(_core.check_optimizer_step(json.dumps(description), given))
            self._book.looked("update")
            if found:
                self._book.broken(
                    "update", name, f"{type(optimizer).__name__} did not do what its hyperparameters say: {found[0]}"
                )
        self._open.clear()

    # ---- who is trained, and by whom

    def _look_around(self) -> None:
        """Once: parameters without an optimizer, and optimizers whose parameters are not those of the model."""
        scene, book = self._scene, self._book
        if self._looked_around:
            return
        self._looked_around = True
        if scene.has_masters:
            book.not_checked("in_optimizer", "the optimizer updates copies of its own")
            return
        held = set(scene.groups())
        others = [o for o in self._optimizers if o is not scene.view.optimizer]
        elsewhere = {id(p) for o in others for g in o.param_groups for p in g["params"]}
        sharded = type(scene.view.optimizer).__name__.startswith("ZeroRedundancy")
        if sharded:
            held |= {id(p) for p in getattr(scene.view.optimizer, "_all_params", [])}
        trained = {n: p for n, p in scene.parameters.items() if p.requires_grad and scene.names[id(p)] == n}
        book.looked("in_optimizer", len(trained))
        missing = [name for name, p in trained.items() if id(p) not in held and id(p) not in elsewhere]
        strangers = len(held - {id(p) for p in scene.parameters.values()})
        if missing and strangers:
            book.broken(
                "in_optimizer",
                missing,
                f"the optimizer trains {strangers} tensors that are not in the model, and not this one: it was made before the "
                "model was changed, moved or wrapped",
            )
        elif missing:
            book.broken("in_optimizer", missing, "it requires a gradient and is in no optimizer")

    # ---- parameters that stay, and that should

    def after_step(self) -> None:
        """Right after it."""
        self._compare()
        scene, book = self._scene, self._book
        groups = scene.groups()
        trained = scene.trained()
        moving, gradients = [], []
        for name, parameter in trained.items():
            gradient = scene.gradient(parameter)
            rate = float(groups.get(id(parameter), {}).get("lr", 0.0))
            if rate > 0 and gradient is not None and gradient.numel() and not scene.has_masters:
                moving.append(name)
                gradients.append(scene.sample(gradient))
        if book.on("unchanged"):
            self._stays(trained, moving, gradients)
        if book.on("frozen"):
            self._frozen_stay(trained)

    def _stays(self, trained: dict, moving: list, gradients: list) -> None:
        self._book.looked("unchanged", len(moving))
        stays = []
        narrow = False
        for name, gradient, total in zip(moving, gradients, bit_sums([trained[name] for name in moving])):
            same = self._sums.get(name) == total and bool(gradient.any())
            self._sums[name] = total
            self._same[name] = self._same.get(name, 0) + 1 if same else 0
            if self._same[name] >= _STAYS:
                stays.append(name)
                narrow |= rounding(trained[name].dtype) > 1e-4
        if stays:
            why = (
                "the update is less than its type can hold: keep a float32 copy"
                if narrow
                else "the step does not reach it"
            )
            self._book.broken("unchanged", stays, f"it has a gradient and a learning rate and stays as it is: {why}")

    def _frozen_stay(self, trained: dict) -> None:
        scene, book = self._scene, self._book
        frozen = {
            name: p
            for name, p in scene.parameters.items()
            if not p.requires_grad and scene.names[id(p)] == name and p.numel() and p.dtype.is_floating_point
        }
        book.looked("frozen", len(frozen))
        changed, copies = [], []
        for name, total in zip(frozen, bit_sums(list(frozen.values()))):
            if self._frozen.get(name, total) != total:
                (copies if _is_average(name) else changed).append(name)
            self._frozen[name] = total
        for name in list(self._frozen):
            if name not in frozen:
                del self._frozen[name]
        for name in copies:
            book.note("frozen", name, "it changes, as a running average by its name does")
        if changed:
            book.broken("frozen", changed, "it requires no gradient and changes")

    # ---- learning rates

    def every_step(self) -> None:
        """Right before each step, looked at or not: rates are numbers."""
        if not self._book.on("lr_schedule"):
            return
        rates = [float(g.get("lr", 0.0)) for part in self._scene.view.parts for g in getattr(part, "param_groups", ())]
        if not rates:
            return
        self._book.looked("lr_schedule")
        if self._scene.missed_step:
            self._rates, self._advances, self._fell = [], [], None
        before = self._rates[-1] if self._rates else None
        bad = [rate for rate in rates if not 0 <= rate < float("inf")]
        if bad:
            self._book.broken("lr_schedule", "", f"the learning rate is {bad[0]:g}")
        self._zero_rate = self._zero_rate + 1 if not any(rates) else 0
        if self._zero_rate >= _ZERO_RATE:
            self._book.broken("lr_schedule", "", f"the learning rate has been 0 for {_ZERO_RATE} steps")
        if before is not None and len(before) == len(rates) and len(self._rates) >= _WARM:
            pairs = [(a, b) for a, b in zip(before, rates) if a > 0]
            up = next(((a, b) for a, b in pairs if b > _JUMP * a), None)
            steady = max(max(r) for r in self._rates[-_WARM:]) < min(max(r) for r in self._rates[-_WARM:]) * _JUMP
            if up is not None and up[1] <= _SAME_HEIGHT * self._highest:
                self._book.note(
                    "lr_schedule", "", f"the learning rate goes back from {up[0]:.4g} to {up[1]:.4g}, as a restart does"
                )
            elif up is not None and steady and not self._restarts():
                self._book.broken(
                    "lr_schedule",
                    "",
                    f"the learning rate jumps from {up[0]:.4g} to {up[1]:.4g} from one step to the next",
                )
        self._climbs_again(before, rates)
        self._highest = max(self._highest, *rates)
        self._rates = [*self._rates[-_WARM:], rates]

    def _climbs_again(self, before: Optional[list], rates: list) -> None:
        """A rate that falls at once and climbs afterwards: the warm-up begins anew."""
        if before is not None and len(before) == len(rates) and min(rates) > 0 and max(before) > _FALL * max(rates):
            self._fell = (self._scene.count, max(rates))
        if self._fell is None or self._scene.count > self._fell[0] + _SOON:
            self._fell = None
        elif max(rates) > _CLIMB * self._fell[1] and not self._restarts():
            self._book.broken(
                "lr_schedule",
                "",
                f"the learning rate fell at once to {self._fell[1]:.4g} at step {self._fell[0]} and climbs again: the warm-up "
                "begins anew",
            )
            self._fell = None

    def _restarts(self) -> bool:
        return any("Restart" in type(s).__name__ or "Cyclic" in type(s).__name__ for s in self._schedulers)

    def _schedule(self) -> None:
        """Whether the scheduler belongs to this optimizer, and is stepped once for each step of it."""
        scene, book = self._scene, self._book
        if not book.on("lr_schedule"):
            return
        own = [s for s in self._schedulers if _optimizer_of(s) is scene.torch_optimizer]
        strangers = [s for s in self._schedulers if _optimizer_of(s) is not scene.torch_optimizer]
        before, self._strangers = self._strangers, {id(s): s.last_epoch for s in strangers}
        lonely = [
            s
            for s in strangers
            if not getattr(_optimizer_of(s), "state", None) and s.last_epoch > before.get(id(s), s.last_epoch)
        ]
        if lonely and not own and scene.count >= 2:
            book.broken(
                "lr_schedule",
                "",
                f"{type(lonely[0]).__name__} changes the rate of an optimizer that never steps: it was made for another one",
            )
        if (
            scene.count == 0
            and any(s.last_epoch >= 1 for s in own)
            and not getattr(scene.torch_optimizer, "state", None)
        ):
            book.broken("lr_schedule", "", "scheduler.step() comes before optimizer.step(): the first rate is left out")
        places = [s.last_epoch for s in own]
        if self._advances and len(self._advances[-1][1]) == len(places):
            steps = scene.count - self._advances[-1][0]
            each = [(b - a) / steps for a, b in zip(self._advances[-1][1], places)] if steps else []
            many = scene.micro_batches > 1 and scene.micro_batches != scene.ranks
            if many and len(self._advances) >= 3 and any(e == scene.micro_batches for e in each):
                book.broken(
                    "lr_schedule",
                    "",
                    f"scheduler.step() is called {scene.micro_batches} times a step, at each micro step",
                )
        self._advances.append((scene.count, places))


def _optimizer_of(scheduler: Any) -> Any:
    optimizer = getattr(scheduler, "optimizer", None)
    while type(optimizer).__name__ == "AcceleratedOptimizer":
        optimizer = optimizer.optimizer
    return getattr(optimizer, "optim", None) or optimizer


def _is_average(name: str) -> bool:
    return any(word in name.lower() for word in ("ema", "teacher", "target", "averag", "encoder_k", "key_encoder"))


def _copy(tensor: Any, whole: bool) -> torch.Tensor:
    """Some elements, or all with their shape, on the host."""
    plain = local_part(tensor.detach())
    if not whole:
        plain = plain.reshape(-1)
        if plain.numel() > _ELEMENTS:
            plain = plain[:: plain.numel() // _ELEMENTS][:_ELEMENTS]
    return plain.to("cpu", copy=True).contiguous()


def _tag(key: str, name: str) -> str:
    part, _, state = key.partition("/")
    return f"{part}/{name}" + (f"/{state}" if state else "")


def _plain_group(group: dict) -> dict:
    """The hyperparameters as JSON has them."""
    out = {}
    for key, value in group.items():
        if key in ("params", "param_names"):
            continue
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.item()
        if isinstance(value, (tuple, list)):
            value = [v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v for v in value]
            value = [v for v in value if isinstance(v, (bool, int, float, str))]
        if isinstance(value, (bool, int, float, str, list)):
            out[key] = value
    return out

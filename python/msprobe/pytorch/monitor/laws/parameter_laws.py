"""Laws of parameters: tied weights, types that must not fall, averaged copies."""

from collections.abc import Mapping
from typing import Any, Optional, Union

import torch

from ..values import local_part
from .scene import Scene, bit_sums, is_dtensor, rounding

_FIT = 1e-4  # of an average's samples, relative to what they moved
_SAME_RATE = 2  # looks


def copy_of(given: Any) -> Union[dict, list]:
    """An averaged copy as its tensors by name, or in their order.

    Args:
        given: A module, a dict of tensors, or a list or tuple of tensors.

    Returns:
        A dict, or a list where there are no names.

    Raises:
        TypeError: It is neither of these.
    """
    if hasattr(given, "named_parameters"):
        return {name.removeprefix("module."): p for name, p in given.named_parameters()}
    tensors = given.values() if isinstance(given, Mapping) else given if isinstance(given, (list, tuple)) else None
    if tensors is None or not tensors or not all(isinstance(t, torch.Tensor) for t in tensors):
        kind = type(given).__name__
        raise TypeError(f"watch_ema takes a module, or a dict or list of tensors; it was given {kind}")
    if isinstance(given, Mapping):
        return {str(name).removeprefix("module."): t for name, t in given.items()}
    return list(given)


class ParameterLaws:
    """Looks at parameters before and after steps."""

    def __init__(self, scene: Scene) -> None:
        """Remembers what is tied.

        Args:
            scene: The training.
        """
        self._scene, self._book = scene, scene.book
        self._ties = self._find_ties()
        self._types: dict = {}
        self._moment_types: dict = {}
        self._averages: list = []  # of watch_ema

    # ---- tied weights

    def _find_ties(self) -> list:
        """Lists of names: of one parameter with several, of an input and output embedding that the configuration ties."""
        by_object: dict = {}
        for name, parameter in self._scene.parameters.items():
            by_object.setdefault(id(parameter), []).append(name)
        ties = [names for names in by_object.values() if len(names) > 1]
        known = {frozenset(names) for names in ties}
        for prefix, model in self._scene.named_models():
            for names in (_declared_tie(model, prefix), self._same_embedding(prefix, model)):
                if len(names) > 1 and not any(set(names) <= other for other in known):
                    ties.append(names)
                    known.add(frozenset(names))
        return ties

    def _same_embedding(self, prefix: str, model: Any) -> list:
        """An embedding and a linear layer that begin with the same bits: one was copied, not tied."""
        embeddings, heads = [], []
        for path, module in model.named_modules():
            weight = getattr(module, "weight", None)
            if not isinstance(weight, torch.nn.Parameter) or weight.dim() != 2:
                continue
            name = f"{prefix}{path}.weight"
            (embeddings if isinstance(module, torch.nn.Embedding) else heads).append((name, weight))
        for name, weight in embeddings:
            for other, head in heads:
                if weight is not head and weight.shape == head.shape and _same_bits(weight, head):
                    return [name, other]
        return []

    def _tied(self) -> None:
        scene, book = self._scene, self._book
        now = {name: p for prefix, m in scene.named_models() for name, p in _all_parameters(m, prefix)}
        for names in self._ties:
            found = [(name, now[name]) for name in names if name in now]
            if len(found) < 2:
                continue
            book.looked("tied")
            first = found[0][1]
            apart = [name for name, p in found[1:] if p is not first and not _is_view(p, first)]
            if not apart:
                continue
            different = [name for name, p in found if p.shape != first.shape or not _same_bits(p, first)]
            if different:
                book.broken("tied", different, f"it is tied to {found[0][0]} and has other values")
            elif any(p.requires_grad for _, p in found):
                book.broken(
                    "tied",
                    apart,
                    f"it is tied to {found[0][0]} and is a tensor of its own: the next step makes them differ",
                )

    # ---- types

    def _dtypes(self) -> None:
        scene, book = self._scene, self._book
        book.looked("dtype", len(scene.parameters))
        fallen: dict = {}
        for name, parameter in scene.parameters.items():
            before = self._types.setdefault(name, parameter.dtype)
            if _is_narrower(parameter.dtype, before):
                fallen.setdefault(f"it was {_word(before)} and is {_word(parameter.dtype)}", []).append(name)
        for name, parameter in scene.trained().items():
            state = {} if scene.has_masters else getattr(scene.torch_optimizer, "state", {}).get(parameter, {})
            for key in ("exp_avg", "exp_avg_sq", "momentum_buffer"):
                moment = state.get(key)
                if not isinstance(moment, torch.Tensor) or not moment.dtype.is_floating_point:
                    continue
                before = self._moment_types.setdefault((name, key), moment.dtype)
                if _is_narrower(moment.dtype, before):
                    fallen.setdefault(f"its {key} was {_word(before)} and is {_word(moment.dtype)}", []).append(name)
                elif _is_narrower(moment.dtype, parameter.dtype):
                    text = f"its {key} is {_word(moment.dtype)}, the parameter {_word(parameter.dtype)}"
                    fallen.setdefault(text, []).append(name)
        for text, names in fallen.items():
            book.broken("dtype", names, text)
        half = [
            prefix + name
            for prefix, model in scene.named_models()
            for name, buffer in model.named_buffers()
            if name.rpartition(".")[2] == "inv_freq" and buffer.dtype in (torch.float16, torch.bfloat16)
        ]
        if half:
            book.broken("dtype", half, "frequencies of rotary positions need float32: far positions fall together")
        kinds = {p.device.type for p in scene.parameters.values()}
        if any(torch.is_autocast_enabled(kind) for kind in kinds if kind in ("cpu", "cuda")):
            book.broken("dtype", "", "the optimizer steps inside autocast: end the context after the forward")

    def loss(self, loss: torch.Tensor) -> None:
        """The loss of a forward pass."""
        kinds = {p.dtype for p in self._scene.parameters.values() if p.dtype.is_floating_point}
        if loss.dtype.is_floating_point and kinds and all(_is_narrower(loss.dtype, kind) for kind in kinds):
            self._book.broken(
                "dtype", "", f"the loss is {_word(loss.dtype)}, the parameters are wider: it is computed in autocast"
            )

    # ---- averaged copies

    def watch_ema(self, copy: Any, decay: Optional[float]) -> None:
        """Holds an averaged copy, as copy_of() gives it, against the parameters."""
        online = {name.removeprefix("module."): p for name, p in self._scene.parameters.items()}
        if isinstance(copy, list):
            named = self._named(copy, online)
            if named is None:
                self._book.not_checked("ema", f"a list of {len(copy)} tensors is not that of the model's parameters")
                return
            copy = named
        pairs = [
            (name, copy[name], online[name])
            for name in copy
            if name in online and copy[name].shape == online[name].shape
        ]
        if not pairs:
            self._book.not_checked("ema", "the copy has no parameter of the model's names and shapes")
            return
        self._averages.append({"pairs": pairs, "decay": decay, "before": None, "still": 0, "equal": 0})

    @staticmethod
    def _named(copy: list, online: dict) -> Optional[dict]:
        """A list in the order of the parameters, all of them or those that are trained, by their names."""
        trained = {name: p for name, p in online.items() if p.requires_grad}
        for parameters in (online, trained):
            shapes = [p.shape for p in parameters.values()]
            if shapes == [t.shape for t in copy]:
                return dict(zip(parameters, copy))
        return None

    def _ema(self) -> None:
        if not self._averages:
            self._book.not_checked("ema", "no averaged copy is known: call watch_ema(copy, decay)")
        for average in self._averages:
            self._one_average(average)

    def _one_average(self, average: dict) -> None:
        """One d for all in e' = d e + (1 - d) w: what moved against what is left to move, by least squares."""
        scene, book = self._scene, self._book
        shared = [
            name for name, copy, online in average["pairs"] if copy.data_ptr() == online.data_ptr() and copy.numel()
        ]
        if shared:
            book.broken("ema", shared, "the averaged copy shares its memory with the parameter: it is no copy")
            return
        now = [(name, scene.sample(copy), scene.sample(online)) for name, copy, online in average["pairs"]]
        before, average["before"] = average["before"], (scene.count, now)
        if before is None or scene.count != before[0] + 1 or scene.missed_step:
            return
        # Between two steps the copy was given the parameters that the step before left, which are those of now.
        old = torch.cat([copy for _, copy, _ in before[1]])
        new, target = torch.cat([copy for _, copy, _ in now]), torch.cat([online for _, _, online in now])
        moved, way = new - old, target - old
        power = float((way**2).sum())
        if power == 0:
            return
        book.looked("ema")
        if not bool(moved.any()):
            average["still"] += 1
            if average["still"] >= _SAME_RATE:
                book.broken("ema", "", "the averaged copy does not move")
            return
        rate = float((moved * way).sum()) / power
        left = float(((moved - rate * way) ** 2).sum()) ** 0.5
        noise = 4 * rounding(average["pairs"][0][1].dtype) * float(torch.linalg.vector_norm(new))
        text = ""
        if left > _FIT * float(torch.linalg.vector_norm(moved)) + noise:
            text = "the averaged copy is no average of itself and the parameters"
        elif rate > 1 - 1e-4:
            average["equal"] += 1
            text = "the averaged copy is the parameters: its decay is 0" if average["equal"] >= _SAME_RATE else ""
        elif rate < -noise / power**0.5:
            text = "the averaged copy moves away from the parameters"
        elif (
            average["decay"] is not None
            and abs(1 - rate - average["decay"]) > 0.02 * (1 - average["decay"]) + noise / power**0.5
        ):
            text = (
                f"the averaged copy keeps {1 - rate:.6g} of itself at a step, and its decay is {average['decay']:.6g}"
            )
        if text:
            book.broken("ema", "", text)

    def before_step(self) -> None:
        """Right before the optimizer steps."""
        if self._book.on("dtype"):
            self._dtypes()
        if self._book.on("ema"):
            self._ema()
        if self._book.on("tied"):
            self._tied()

    def after_step(self) -> None:
        """Right after it."""
        if self._book.on("tied"):
            self._tied()


def _all_parameters(model: Any, prefix: str) -> Any:
    return ((prefix + name, p) for name, p in model.named_parameters(remove_duplicate=False))


def _declared_tie(model: Any, prefix: str) -> list:
    """Input and output embedding, where the configuration of a Hugging Face model says they are tied."""
    if not getattr(getattr(model, "config", None), "tie_word_embeddings", False):
        return []
    ends = [getattr(model, f"get_{side}_embeddings", lambda: None)() for side in ("input", "output")]
    weights = [getattr(end, "weight", None) for end in ends]
    if any(not isinstance(weight, torch.Tensor) for weight in weights):
        return []
    paths = {id(module): path for path, module in model.named_modules()}
    return [f"{prefix}{paths[id(end)]}.weight" for end in ends if id(end) in paths]


def _same_bits(a: Any, b: Any) -> bool:
    if is_dtensor(a) != is_dtensor(b) or a.dtype != b.dtype or a.shape != b.shape:
        return False
    here, there = local_part(a.detach()), local_part(b.detach())
    if here.numel() == 0 or here.device.type == "meta" or not bool((here != here.reshape(-1)[0]).any()):
        return here.numel() == there.numel() and bool((here == there).all()) if here.device.type != "meta" else True
    first, second = bit_sums([here, there])
    return first == second and bool(torch.equal(here, there))


def _is_view(a: Any, b: Any) -> bool:
    here, there = local_part(a.detach()), local_part(b.detach())
    return here.device == there.device and here.data_ptr() == there.data_ptr() and here.numel() > 0


def _is_narrower(now: torch.dtype, before: torch.dtype) -> bool:
    if not now.is_floating_point or not before.is_floating_point:
        return False
    return torch.finfo(now).bits < torch.finfo(before).bits


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

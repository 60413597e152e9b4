"""Laws of several ranks: replicas are equal, reductions conserve, each rank has data of its own."""

from collections import Counter
from typing import Any, Optional

import torch

from ...._compat import distributed_module
from ...._monitor.law_ranks import RankLines
from ..values import local_part
from .scene import Scene, bit_sums, is_dtensor

dist = distributed_module()

_AT_ONCE = 8  # parameters whose reduction is computed again
_ELEMENTS = 16
_OFF = 0.02  # of a reduction, relative: communications may be in bfloat16
_SAME = 3
_TWICE = 2
_WAIT = 2.0  # seconds at the end
_serial = 0


class ReplicaLaws:
    """Writes a line for each checked step; the first rank reads those of all."""

    def __init__(self, scene: Scene, dp_group: Any, tp_group: Any, directory: str) -> None:
        """Looks which ranks hold the same.

        Args:
            scene: The training.
            dp_group: Ranks of data parallelism, if they are known.
            tp_group: Ranks of tensor parallelism, if they are known.
            directory: Of this rank's files.
        """
        self._scene, self._book = scene, scene.book
        self._tp_group = tp_group
        self._lines: Optional[RankLines] = None
        self._next = 0
        self._held: dict = {}  # (name, part) -> whether replicas that nobody declares were equal so far
        self._both: dict = {}  # -> looks at which their gradients were equal and they were not
        self._same_data = 0
        self._pending: dict = {}
        self._declared = self._parallel = False
        ddp = [m for _, m in scene.named_modules() if type(m).__name__ == "DistributedDataParallel"]
        self._group = getattr(ddp[0], "process_group", None) if ddp else dp_group
        self._ignored = set().union(*(getattr(m, "parameters_to_ignore", ()) for m in ddp)) if ddp else set()
        self._declared = self._group is not None
        self._is_ddp = bool(ddp)
        meshes = [p.device_mesh for p in scene.parameters.values() if is_dtensor(p)]
        fully = any(t.__name__ == "FSDPModule" for _, m in scene.named_modules() for t in type(m).__mro__)
        self._has_own_data = (self._declared and not meshes) or scene.is_fsdp1
        self._has_own_data |= fully and bool(meshes) and all(mesh.ndim == 1 for mesh in meshes)
        self._initial: Optional[dict] = None
        self._start(directory)
        if self._lines is not None:
            self._initial = self._first_sums()

    def _first_sums(self) -> dict:
        """Of parameters before the training, without those that are one number: they may be equal by chance.

        Norms are not left out: no layout divides them.
        """
        found = {}
        for name, parameter in self._scene.parameters.items():
            here = local_part(parameter.detach())
            if not here.numel() or here.device.type == "meta":
                continue
            is_norm = "norm" in type(self._scene.owner[name]).__name__.lower()
            if is_norm or bool((here != here.reshape(-1)[0]).any()):
                found[name] = bit_sums([here])[0]
        return found

    def _start(self, directory: str) -> None:
        global _serial
        _serial += 1
        if not self._scene.several_ranks:
            for law in ("replicas", "collectives"):
                self._book.not_checked(law, "there is one rank")
            return
        try:
            store = dist.distributed_c10d._get_default_store()
            self._lines = RankLines(directory, dist.get_rank(), store, _serial, self._scene.ranks)
        except (RuntimeError, AttributeError, ValueError) as error:
            for law in ("replicas", "collectives"):
                self._book.not_checked(law, f"the ranks' store cannot be used: {error}")

    # ---- what this rank writes

    def _part(self, name: str, parameter: Any) -> str:
        """Which part of a parameter this rank has: ranks with the same one are replicas."""
        rank = dist.get_rank()
        if (
            self._scene.is_fsdp1
            or name.removeprefix("module.") in self._ignored
            or not getattr(parameter, "allreduce", True)
        ):
            return f"rank{rank}"
        if is_dtensor(parameter):
            here = parameter.device_mesh.get_coordinate() or []
            spread = [(d, c) for d, (c, p) in enumerate(zip(here, parameter.placements)) if not p.is_replicate()]
            return f"shard{spread}"
        if getattr(parameter, "tensor_model_parallel", False) and self._tp_group is not None:
            return f"tp{dist.get_rank(group=self._tp_group)}"
        return ""

    def before_step(self, batches: list) -> None:
        """Right before the optimizer steps: gradients after their reduction."""
        if self._lines is None:
            return
        scene = self._scene
        trained = scene.trained()
        gradients = {}
        for name, parameter in trained.items():
            gradient = parameter.grad
            partial = is_dtensor(gradient) and any(p.is_partial() for p in gradient.placements)
            plain = None if partial else scene.gradient(parameter)
            if plain is not None and plain.numel():
                gradients[name] = plain
        sums = dict(zip(gradients, bit_sums(list(gradients.values())))) if not scene.is_fsdp1 else {}
        names = [name for name in gradients if name in scene.accumulated and scene.passes.get(name)]
        chosen = [names[(self._next + i) % len(names)] for i in range(min(_AT_ONCE, len(names)))]
        self._next += _AT_ONCE
        samples = {}
        if self._book.on("collectives") and not scene.is_sharded and not scene.unseen("collectives", scene.unknown):
            for name in chosen:
                own, now = scene.accumulated[name][0], scene.sample(gradients[name])
                samples[name] = [own[:_ELEMENTS].tolist(), now[:_ELEMENTS].tolist()]
        self._pending = {
            "gradients": sums,
            "samples": samples,
            "batch": list(batches[0]) if batches and not scene.outside else [],
        }

    def after_step(self) -> None:
        """Right after it: parameters."""
        if self._lines is None:
            return
        scene = self._scene
        names = [n for n, p in scene.parameters.items() if scene.names[id(p)] == n and local_part(p.detach()).numel()]
        sums = bit_sums([scene.parameters[name] for name in names])
        parts = {name: self._part(name, scene.parameters[name]) for name in names}
        whole = [name for name in names if not parts[name].startswith("rank")]
        totals = dict(zip(names, sums))
        self._lines.tell(
            {
                "step": scene.book.step,
                "parts": {name: parts[name] for name in whole if parts[name]},
                "parameters": {name: totals[name] for name in whole},
                **self._pending,
                **({} if self._initial is None else {"initial": self._initial}),
            }
        )
        self._initial = None
        if dist.get_rank() == 0:
            self.judge(0.0)

    # ---- what the first rank makes of it

    def judge(self, seconds: float) -> None:
        """Looks at the steps of which all ranks have a line."""
        if self._lines is None:
            return
        step = self._book.step
        for lines in self._lines.complete(seconds):
            self._book.step = next(iter(lines.values()))["step"]
            self._one_step(lines)
        self._book.step = step

    def end(self) -> None:
        """The last steps."""
        if self._lines is None:
            return
        if dist.is_initialized() and dist.get_rank() == 0:
            self.judge(_WAIT)
        if dist.is_initialized() and dist.get_rank() != 0:
            for law in ("replicas", "collectives"):
                self._book.not_checked(law, "rank 0 looks at it for all ranks")
        elif self._lines.why:
            for law in ("replicas", "collectives"):
                self._book.not_checked(law, self._lines.why)

    def _one_step(self, lines: dict) -> None:
        sets: dict = {}  # (name, part) -> ranks
        for rank, line in lines.items():
            for name in line["parameters"]:
                sets.setdefault((name, line["parts"].get(name, "")), []).append(rank)
        members = (
            set(dist.get_process_group_ranks(self._group))
            if self._group is not None and dist.is_initialized()
            else None
        )
        unequal: dict = {}
        spread: dict = {}
        for (name, part), ranks in sets.items():
            if len(ranks) < 2:
                continue
            declared = part.startswith("shard") or (members is not None and set(ranks) <= members)
            self._parameter((name, part), ranks, lines, declared, unequal)
            self._gradient((name, part), ranks, lines, declared, spread)
        self._say_unequal(unequal)
        for guilty, names in spread.items():
            who = f"rank {guilty[0]} has another than the others" if len(guilty) == 1 else "ranks have different ones"
            self._book.broken(
                "collectives", names, f"after the reduction {who}: it is not reduced over all of them", _rank_of(guilty)
            )
        for (name, part), ranks in sets.items():
            is_replica = self._held.get((name, part)) if members is None else set(ranks) <= members
            if len(ranks) > 1 and is_replica and not part:
                self._reduction(name, ranks, lines, members is not None)
        self._data(lines, members)

    def _parameter(self, key: tuple, ranks: list, lines: dict, declared: bool, unequal: dict) -> None:
        values = {rank: lines[rank]["parameters"][key[0]] for rank in ranks}
        equal = len(set(values.values())) == 1
        gradients = {rank: lines[rank].get("gradients", {}).get(key[0]) for rank in ranks}
        reduced = len(set(gradients.values())) == 1 and next(iter(gradients.values())) not in (None, 0)
        if key not in self._held:
            first = {lines[rank].get("initial", {}).get(key[0]) for rank in ranks}
            self._held[key] = len(first) == 1 and None not in first
        if not declared and not self._held[key]:
            # What is reduced over ranks is meant to be equal on them.
            self._both[key] = self._both.get(key, 0) + 1 if reduced and not equal else 0
            if self._both[key] < _TWICE:
                return
        self._book.looked("replicas")
        if not equal:
            unequal.setdefault(_guilty(values), []).append(key[0])

    def _say_unequal(self, unequal: dict) -> None:
        for guilty, names in unequal.items():
            who = (
                f"rank {guilty[0]} differs from the others"
                if len(guilty) == 1
                else "ranks differ; which is wrong cannot be said"
            )
            self._book.broken("replicas", names, f"replicas of the parameter are not equal: {who}", _rank_of(guilty))

    def _gradient(self, key: tuple, ranks: list, lines: dict, declared: bool, spread: dict) -> None:
        values = {rank: lines[rank].get("gradients", {}).get(key[0]) for rank in ranks}
        if None in values.values() or not (declared or self._held.get(key)):
            return
        self._book.looked("collectives")
        if len(set(values.values())) > 1:
            spread.setdefault(_guilty(values), []).append(key[0])

    def _reduction(self, name: str, ranks: list, lines: dict, is_data_parallel: bool) -> None:
        samples = [lines[rank].get("samples", {}).get(name) for rank in ranks]
        if any(sample is None for sample in samples):
            return
        own = torch.tensor([sample[0] for sample in samples], dtype=torch.float64)
        after = torch.tensor(samples[0][1], dtype=torch.float64)
        mean, size = own.mean(0), own.abs().mean(0)
        if (
            not torch.isfinite(own).all()
            or not torch.isfinite(after).all()
            or float(size.norm()) == 0
            or len(after) < 2
        ):
            return
        power = float((mean**2).sum())
        if power == 0 or not bool((own != own[0]).any()):
            return
        self._book.looked("collectives")
        factor = float((after * mean).sum()) / power
        if float((after - factor * mean).norm()) > _OFF * abs(factor) * float(size.norm()) + 1e-30:
            alone = next(
                (r for r, row in zip(ranks, own) if float((after - row).norm()) < 1e-6 * float(size.norm())), None
            )
            how = (
                "it is that of one rank: it was not reduced"
                if alone is not None
                else "ranks are left out or counted twice"
            )
            self._book.broken(
                "collectives", name, f"the reduced gradient is not the mean of the ranks' gradients: {how}"
            )
        elif is_data_parallel and abs(factor - len(ranks)) < 0.01 * len(ranks) and not self._scene.clipped:
            self._book.broken(
                "collectives",
                "",
                f"the reduced gradient is the sum over {len(ranks)} ranks and not their mean: it is "
                f"{len(ranks)} times as large",
            )

    def _data(self, lines: dict, members: Optional[set]) -> None:
        if not self._has_own_data or not self._book.on("batch_repeats"):
            return
        batches = [tuple(line.get("batch", ())) for rank, line in lines.items() if members is None or rank in members]
        same = len(batches) > 1 and len(set(batches)) == 1 and bool(batches[0])
        self._same_data = self._same_data + 1 if same else 0
        if self._same_data >= _SAME:
            self._book.broken(
                "batch_repeats",
                "",
                f"all ranks have had the same batch for {_SAME} looks: the sampler does not know the ranks",
            )


def _guilty(values: dict) -> tuple:
    """The rank that differs from a majority; all of them where there is none."""
    counts = Counter(values.values()).most_common()
    if counts[0][1] > len(values) / 2:
        odd = tuple(rank for rank, value in values.items() if value != counts[0][0])
        return odd if len(odd) == 1 else tuple(sorted(odd))
    return tuple(sorted(values))


def _rank_of(guilty: tuple) -> Optional[int]:
    return guilty[0] if len(guilty) == 1 else None

"""What a planted bug is, where it is, and how an answer is held against that."""

import json
from pathlib import Path
from typing import Callable, NamedTuple, Optional


class Case(NamedTuple):
    name: str
    make: Callable  # () or (rank, world) -> Work
    bug: Callable  # (work) or (work, rank): the one change
    where: tuple  # places; see `Place`
    about: str  # one line for the table
    ranks: Optional[tuple] = None  # whose answer counts; None: any
    world: int = 1
    level: str = "mix"
    task: str = "statistics"
    summary: str = "statistics"
    target: Optional[Callable] = None  # in the place of `make`, where the target differs by more than the bug

    def side(self, side):
        """(the change, the builder)"""
        return (self.bug, self.target or self.make) if side == "target" else (None, self.make)


class Place(NamedTuple):
    """Parsed from "backward:model.layers.1.self_attn/softmax#3"; forward without a word.

    Without "/" the module itself, "module/api" that api called directly by the module, "module/*" each of them, "/api" one
    that no module calls; "clip_grad" and "optimizer" stand for those that gradient clipping and the optimizer call. "#3" is
    the call number: of an api over the whole run, of a module its own. "any/api#3" is for dumps without modules.
    """

    direction: str
    module: str
    api: str  # "" for the module itself
    number: str

    @staticmethod
    def parse(text):
        direction, _, rest = text.rpartition(":")
        rest, _, number = rest.partition("#")
        module, _, api = rest.partition("/")
        return Place(direction or "forward", module, api, number)

    def holds(self, op, parents):
        """Is the op of a dump here? `parents`: construct.json."""
        parts = op.split(".")
        direction = next((d for d in ("forward", "backward") if d in parts[-2:]), "backward")  # or parameters_grad
        if direction != self.direction:
            return False
        path = module_path(op)
        if path is not None:
            return not self.api and path == self.module and self.number in ("", parts[-1])
        if not self.api or self.number not in ("", parts[-2]) or self.api not in ("*", ".".join(parts[1:-2])):
            return False
        parent = parents.get(op) or ""
        return self.module in ("any", module_path(parent) or parent)


def module_path(op):
    """Module.model.norm.LlamaRMSNorm.forward.0 -> model.norm; None for others."""
    parts = op.split(".")
    if parts[0] not in ("Module", "Cell"):
        return None
    tail = 1 if parts[-1] == "parameters_grad" else 2
    return ".".join(parts[1 : -tail - 1])


def read_dump(directory):
    """Names of the ops, and the parent of each."""
    names = list(json.loads((directory / "dump.json").read_text())["data"])
    construct = json.loads((directory / "construct.json").read_text())
    return names, {name: parent[0] if isinstance(parent, list) else parent for name, parent in construct.items()}


def rank_directories(side):
    """Of step 0: {rank: directory}."""
    step = Path(side) / "step0"
    return {int(path.name[4:] or 0): path for path in sorted(step.iterdir()) if path.name.startswith("rank")}


def accepted(case, root):
    """{rank: {"target": the names that are right, "golden": the same where the golden run has the op and the target not}}."""
    places = [Place.parse(text) for text in case.where]
    found = {}
    for rank in rank_directories(root / "target"):
        if case.ranks is not None and rank not in case.ranks:
            continue
        found[rank] = {}
        for side in ("target", "golden"):
            names, parents = read_dump(rank_directories(root / side)[rank])
            found[rank][side] = [name for name in names if any(place.holds(name, parents) for place in places)]
    return found


def write_truth(case, root):
    truth = {"case": case.name, "about": case.about, "where": list(case.where), "ranks": case.ranks}
    truth.update(world=case.world, level=case.level, task=case.task, accept=accepted(case, root))
    (root / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return truth

"""Makes the small cases of tests/golden/graph: dumps with everything that can stand in one, and what the old tool makes of them.

usage: make_graph_cases.py OLD_MSPROBE      (the old tool's command, e.g. old/bin/msprobe)

Each case is a folder with target/ and golden/ (dumps), options.json and expected.json (the tables of the old tool's database).
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from graph_cases import only_db, read_db, write_rank

HERE = Path(__file__).resolve().parent / "graph"
NAN, INF = float("nan"), float("inf")
FLOATS = [0.0, 1.5, -2.25, 1e-5, 123456.789, 3e20, 0.1, 1 / 3, 7e-8, -0.0, 100.123456789]
INTEGERS = [0, 1, -5, 500, 2**40, 2**63 - 1, -(2**63), 2**64 - 1]
APIS = """Functional.linear Tensor.__add__ Torch.zeros Tensor.to Distributed.all_to_all_single Distributed.broadcast Distributed.send
 NPU.npu_x Aten.foo Mint.add Weird.thing MintFunctional.y Tensor.masked_fill_ Distributed.all_gather""".split()


class Dump:
    """One side of a case. Both sides draw the same numbers from `base`; what differs on the golden side comes from `drift`."""

    def __init__(self, seed, side, md5):
        self.base, self.drift = random.Random(seed), random.Random(seed * 7 + side)
        self.side, self.md5 = side, md5
        self.data, self.construct, self.stack, self.count = {}, {}, {}, {}

    def drifts(self, chance):
        return self.side == 1 and self.drift.random() < chance

    def number(self):
        value = self.base.choice(FLOATS)
        if (special := self.base.random()) < 0.13:
            value = NAN if special < 0.05 else INF if special < 0.1 else -INF
        return (
            self.drift.choice([value * 1.001, value * 2, value + 1, 0.0, NAN, INF, None]) if self.drifts(0.3) else value
        )

    def integer(self):
        value = self.base.choice(INTEGERS)
        return self.drift.choice([max(value - 1, -(2**63)), 0, 3, 7]) if self.drifts(0.3) else value

    def tensor(self):
        base = self.base
        dtype = base.choice(["torch.float32", "torch.bfloat16", "torch.int64", "torch.bool"])
        item = {"type": "torch.Tensor", "dtype": dtype, "shape": base.choice([[2, 3], [], [64], [1, 2, 3, 4]])}
        if self.drifts(0.1):
            item["dtype"] = "torch.float16"
        if self.drifts(0.1):
            item["shape"] = [2, 4]
        kind = base.random()
        if kind < 0.6:
            item.update(Max=self.number(), Min=self.number(), Mean=self.number(), Norm=self.number())
        elif kind < 0.75:
            item.update(Max=self.integer(), Min=self.integer(), Mean=None, Norm=None)
        elif kind < 0.85:
            item.update(Max=True, Min=False, Mean=None, Norm=None)
        elif kind < 0.95:
            item.update(Max=self.number(), Min=self.number())
        if base.random() < 0.95:
            item["requires_grad"] = (base.random() < 0.5) != self.drifts(0.1)
        if self.md5:
            source = self.drift if self.drifts(0.3) else base
            item["md5"] = f"{source.getrandbits(32):08x}"
        if base.random() < 0.1:
            item["extra"] = base.choice(
                ["it's None", "0.123456789", "12.3456789%", [1, "a", None, True, {"k": "v'"}], "日本"]
            )
        return item

    def leaf(self):
        base = self.base
        kind = base.random()
        if kind < 0.6:
            return self.tensor()
        if kind < 0.9:
            makers = [
                lambda: None,
                lambda: {"type": "int", "value": self.integer()},
                lambda: {"type": "float", "value": self.number()},
                lambda: {"type": "bool", "value": base.random() < 0.5},
                lambda: {
                    "type": "str",
                    "value": base.choice(["mean", "None", "it's", "0.123456789012", "cpu", "", 'q"x']),
                },
                lambda: {"type": "slice", "value": [0, 3, None]},
                lambda: {"type": "torch.Size", "value": [1, base.choice([2, 3])]},
                lambda: {"type": "ellipsis", "value": "..."},
                lambda: {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "abc"},
                lambda: {"type": "torch.dtype", "value": "torch.float32"},
                lambda: {"type": "list", "value": [1, 2.5, "a", None, True]},
            ]
            return base.choice(makers)()
        if kind < 0.95:
            return [self.leaf() for _ in range(base.randint(0, 2))]
        return {f"k{i}": self.leaf() for i in range(base.randint(0, 2))}

    def op(self, name):
        base = self.base
        names = base.sample(["dim", "src", "dst", "group", "x", "group_src"], base.randint(0, 2))
        item = {
            "input_args": [self.leaf() for _ in range(base.randint(0, 3))],
            "input_kwargs": {k: self.leaf() for k in names},
        }
        item["output"] = [self.leaf() for _ in range(base.randint(0, 2))]
        if name.startswith("Module") and base.random() < 0.6:
            item["parameters"] = {"weight": self.tensor(), "bias": self.tensor()}
        if self.drifts(0.15) and item["input_args"]:
            item["input_args"].pop()
        if self.drifts(0.1):
            item["output"].append(self.tensor())
        self.data[name] = item

    def api(self, parent, direction):
        api = self.base.choice(APIS)
        number = self.count.get(api, 0)
        self.count[api] = number + 1 + self.drifts(0.05)
        name = f"{api}.{number}.{direction}"
        self.construct[name] = parent
        self.op(name)
        if self.base.random() < 0.9:
            self.stack[name] = [f"File /a/b.py, line {self.base.randint(0, 9)}, in forward, \n x"]

    def apis(self, parent, direction, most):
        for _ in range(self.base.randint(0, most)):
            self.api(parent, direction)

    def build(self, micro_steps):
        layers = 2
        for step in range(2 if micro_steps else 1):
            net = f"Module.model.Net.forward.{step}"
            for layer in range(layers):
                block, fc = (f"Module.model.layers.{layer}.{n}.forward.{step}" for n in ("Block", "fc.Linear"))
                self.construct[block] = self.base.choice([None, net])
                self.apis(fc, "forward", 2)
                self.construct[fc] = block
                self.apis(block, "forward", 2)
                for name in (fc, block):
                    self.op(name)
                    self.stack[name] = [f"File /a/{name}.py, line 3, in forward, \n x"]
            self.construct[net] = None
            self.op(net)
            self.apis(None, "forward", 3)
            self.construct[net.replace("forward", "backward")] = None
            for layer in reversed(range(layers)):
                block, fc = (f"Module.model.layers.{layer}.{n}.backward.{step}" for n in ("Block", "fc.Linear"))
                self.construct[block] = self.base.choice([None, net.replace("forward", "backward")])
                self.construct[fc] = self.base.choice([None, block, "Module.model.layers.0.fc.Linear.backward.0"])
                self.apis(self.base.choice([fc, None]), "backward", 2)
                self.op(fc)
                self.op(block)
            self.apis(None, "backward", 2)
        for layer in range(layers):
            name = f"Module.model.layers.{layer}.fc.Linear.parameters_grad" + self.base.choice(["", ".0"])
            self.data[name] = {"weight": [self.tensor()], "bias": [None]}
        if micro_steps:
            recorded = {k: [v, self.base.randint(0, 1)] for k, v in self.construct.items()}
            self.construct = {"megatron_micro_step_number": 1, **recorded}
        return self


def stack_by_text(stack):
    groups = {}
    for name, frames in stack.items():
        groups.setdefault(tuple(frames), []).append(name)
    return {str(i): [names, list(frames)] for i, (frames, names) in enumerate(groups.items())}


def ranks(side, md5):
    """Two ranks that talk to each other, with keyword arguments as the links need them."""
    group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g0"}
    for rank in range(2):
        other = {"type": "int", "value": 1 - rank}
        x = {
            "type": "torch.Tensor",
            "dtype": "torch.float32",
            "shape": [4],
            "Max": 1.0,
            "Min": 0.0,
            "Mean": 0.5,
            "Norm": 2.0,
        }
        far = {**x, "Norm": 2.0 + side * rank}
        if md5:
            x, far = {**x, "md5": "0a1b2c3d"}, {**far, "md5": "ffffffff" if side * rank else "0a1b2c3d"}
        p2p = ("isend", "dst") if rank == 0 else ("irecv", "src")
        root = {"type": "int", "value": 0}
        data = {
            f"Distributed.{p2p[0]}.0.forward": {"input_args": [x], "input_kwargs": {p2p[1]: other}, "output": [x]},
            "Distributed.all_reduce.0.forward": {"input_args": [x], "input_kwargs": {"group": group}, "output": [far]},
            "Distributed.broadcast.0.forward": {
                "input_args": [x, root],
                "input_kwargs": {"group": group},
                "output": [x],
            },
            "Distributed.all_gather.0.forward": {"input_args": [[x, x], x], "input_kwargs": {}, "output": [x]},
        }
        if rank == 1:
            data["Distributed.all_reduce.1.forward"] = data["Distributed.all_reduce.0.forward"]
        yield rank, dict.fromkeys(data), data


def case(name, old, options, seed=None, md5=False, micro_steps=False, old_stack=False):
    where = HERE / name
    shutil.rmtree(where, ignore_errors=True)
    for side, folder in enumerate(("target", "golden")):
        if seed is None:
            for rank, construct, data in ranks(side, md5):
                write_rank(where / folder / "step0" / f"rank{rank}", construct, data)
            continue
        made = Dump(seed, side, md5).build(micro_steps)
        write_rank(where / folder, made.construct, made.data, made.stack if old_stack else stack_by_text(made.stack))
    for file in where.rglob("*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()), separators=(",", ":")))
    (where / "options.json").write_text(json.dumps(options))
    with tempfile.TemporaryDirectory() as out:
        paths = ["-tp", where / "target", "-gp", where / "golden"]
        subprocess.run([old, "graph_visualize", *map(str, paths), *options, "-o", out], check=True, capture_output=True)
        tables = {t: list(rows.values()) for t, rows in read_db(only_db(out)).items()}
    compact = {t: {"columns": list(rows[0]), "rows": [list(r.values()) for r in rows]} for t, rows in tables.items()}
    (where / "expected.json").write_text(json.dumps(compact, separators=(",", ":"), ensure_ascii=False))
    print(name, len(tables["tb_nodes"]), "rows", sum(f.stat().st_size for f in where.rglob("*.json")), "bytes")


def main():
    old = sys.argv[1]
    case("values", old, ["-oc"], seed=101)
    case("values_fuzzy", old, ["-fm", "-oc"], seed=102, old_stack=True)
    case("checksums", old, [], seed=103, md5=True)
    case("micro_steps", old, [], seed=104, micro_steps=True)
    case("ranks", old, [])
    case("ranks_checksums", old, [], md5=True)


if __name__ == "__main__":
    main()

"""Makes the small cases of tests/golden/compare: hand-made dumps, and what the old tool answers on them.

usage: make_compare_cases.py OLD_MSPROBE [CASE...]      (the old tool's command, e.g. old/bin/msprobe)

Run it with a Python that has torch. Each case is a folder with target/, golden/ and expected/; the dumps are written here, expected/ by the old tool.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "compare"
NAN, INF = float("nan"), float("inf")


def tensor(value, norm=None, shape=(2, 3), dtype="torch.float32", grad=False, **more):
    """A tensor item whose four statistics follow from `value`."""
    top = {"Max": value, "Min": value, "Mean": value, "Norm": value if norm is None else norm}
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), **top, "requires_grad": grad, **more}


def hashed(md5, dtype="torch.float32", shape=(2, 3)):
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), "md5": md5, "requires_grad": False}


def scalar(value):
    return {"type": type(value).__name__, "value": value}


def op(inputs=(), kwargs=None, outputs=()):
    return {"input_args": list(inputs), "input_kwargs": kwargs or {}, "output": list(outputs)}


def dump(data, level="L1", task="statistics"):
    return {"task": task, "level": level, "framework": "pytorch", "dump_data_dir": None, "data": data}


def vectors(n):
    """The rules of statistics mode, one op each; n is 0 for the target, 1 for the golden side."""

    def pick(target, golden):
        return golden if n else target

    one = tensor(1.0)
    inplace = {"inplace": scalar(True)}
    data = {
        "Functional.same.0.forward": op([one], inplace, [one]),
        "Functional.scalar_arg.0.forward": op([scalar(pick(3, 4)), scalar(pick(0.5, 0.5))], {}, [one]),
        "Functional.nan_out.0.forward": op([one], {}, [tensor(pick(NAN, 1.0))]),
        "Functional.inf_both.0.forward": op([tensor(INF)], {}, [tensor(-INF)]),
        "Functional.inf_signs.0.forward": op(
            [tensor(pick(INF, -INF)), tensor(pick(INF, 1.0)), tensor(pick(1.0, INF))],
            {},
            [tensor(pick(-INF, 1.0)), tensor(pick(1.0, -INF)), tensor(pick(NAN, INF))],
        ),
        "Functional.output_off.0.forward": op([one], {}, [tensor(pick(2.0, 1.0), pick(3.0, 1.0))]),
        "Functional.norm_off.0.forward": op([one] + ([one] if n == 0 else []), {}, [tensor(1.0, pick(1.99, 1.0))]),
        "Functional.grows.0.forward": op([tensor(pick(1.02, 1.0))], {}, [tensor(pick(1.3, 1.0)), one]),
        "Functional.zero_bench.0.forward": op([tensor(pick(0.5, 0.0))], {}, [tensor(pick(1e-20, 0.0))]),
        "Functional.shape.0.forward": op([one], {}, [tensor(1.0, shape=pick([3], [2]))]),
        "Functional.dtype.0.forward": op([tensor(1.0, dtype=pick("torch.float16", "torch.float32"))], {}, [one]),
        "Functional.dtype_apart.0.forward": op([one], {}, [tensor(1.0, dtype=pick("torch.int64", "torch.float32"))]),
        "Functional.grad.0.forward": op([tensor(1.0, grad=bool(n))], {}, [one]),
        "Functional.none.0.forward": op([None, pick(None, scalar(2)), one], {"mask": None}, [one]),
        "Functional.null_stat.0.forward": op(
            [tensor(pick(None, 1.0), 2.0), tensor(None)], {}, [tensor(pick(None, 1.0))]
        ),
        "Functional.device.0.forward": op(
            [scalar(pick("cpu", "npu:0")), scalar(pick("mean", "sum"))],
            {"device": {"type": "torch.device", "value": pick("cpu", "cuda:0")}},
            [one],
        ),
        "Functional.bool.0.forward": op([scalar(bool(n)), scalar(True)], {}, [one]),
        "Functional.bool_tensor.0.forward": op(
            [
                {
                    "type": "torch.Tensor",
                    "dtype": "torch.bool",
                    "shape": [2],
                    "Max": True,
                    "Min": bool(n),
                    "Mean": None,
                    "Norm": None,
                    "requires_grad": False,
                }
            ],
            {},
            [one],
        ),
        "Functional.kinds.0.forward": op(
            [
                {"type": "slice", "value": [None, 3, None]},
                {"type": "ellipsis", "value": "..."},
                {"type": "torch.Size", "value": pick([1, 2], [1, 3])},
                {"type": "torch.memory_format", "format": "contiguous_format"},
                {"type": "float32", "value": 2.5},
                {"type": "int", "value": 12345678901},
                {"type": "int", "value": -7},
            ],
            {"dtype": {"type": "torch.dtype", "value": "torch.float16"}},
            [one],
        ),
        "Functional.nested.0.forward": op(
            [[one, [tensor(2), None]], {"a": tensor(1e-7), "b": {}}],
            {"k": [scalar(1), scalar(2.0)]},
            [{"x": one, "y": [tensor(pick(5, 6), dtype="torch.int64")]}],
        ),
        "Tensor.to.0.forward": op([one], {}, [tensor(pick(NAN, 1.0))]),
        "Torch.empty.0.forward": op([scalar(pick(2, 3))], {}, [tensor(pick(INF, 1.0))]),
        "Distributed._all_gather_base.0.forward": op(
            [tensor(pick(NAN, 1.0)), one], {}, [tensor(pick(9.0, 1.0)), tensor(pick(NAN, 1.0))]
        ),
        "Distributed.send.0.forward": op(
            [one, scalar(pick(1, 2))],
            {
                "dst": scalar(pick(1, 2)),
                "group": {"type": "torch.ProcessGroup", "group_ranks": pick([0, 1], [0, 2]), "group_id": "ab"},
            },
            [one],
        ),
        "Distributed.batch_isend_irecv.0.forward": op(
            [
                [
                    {
                        "class_type": "torch.distributed.P2POp",
                        "tensor": one,
                        "op": "isend",
                        "peer": 1,
                        "tag": 0,
                        "group_id": "77849d8c",
                    },
                    {
                        "class_type": "torch.distributed.P2POp",
                        "tensor": None,
                        "op": "irecv",
                        "peer": 1,
                        "tag": 0,
                        "group_id": "77849d8c",
                    },
                ]
            ],
            {},
            [],
        ),
        "Functional.qkv_proj.0.forward": op([tensor(1.0, dtype=pick("torch.bfloat16", "torch.float32"))], {}, [one]),
        "Functional.same.0.backward": {"input": [tensor(0.25)], "output": [None, tensor(pick(0.5, 0.25))]},
        "Module.fc.Linear.forward.0": {
            **op([one], {}, [one]),
            "parameters": {"weight": tensor(pick(1.5, 1.0)), "bias": one},
        },
        "Module.fc.Linear.parameters_grad.0": {"bias": [one], "weight": [tensor(pick(0.5, 1.0))]},
        "Module.fc.Linear.backward.0": {"input": [one], "output": [tensor(pick(0.1, 1.0), pick(0.1, 2.0))]},
    }
    only = {"Functional.only_here.0.forward": op([tensor(1.0, grad=True), scalar(1)], {}, [tensor(NAN)])}
    return {**data, **only} if n == 0 else {"Functional.only_golden.0.forward": op([one], {}, [one]), **data}


def checksums(n):
    same, other = "0a1b2c3d", "ffffffff"
    data = {
        "Functional.a.0.forward": op(
            [hashed(same), scalar(3), None], {"p": scalar(0.5)}, [hashed(other if n else same)]
        ),
        "Functional.b.0.forward": op(
            [scalar(3 + n), scalar("x,y"), {"type": "torch.Size", "value": [1, 2 + n]}], {}, [hashed(same)]
        ),
        "Functional.c.0.forward": op([hashed(same, "torch.int64" if n else "torch.float32")], {}, [hashed(same)]),
        "Tensor.to.0.forward": op([hashed(same)], {}, [hashed(other if n else same)]),
        "Distributed.send.0.forward": op([hashed(same)], {"dst": scalar(1 + n)}, [hashed(same)]),
        "Functional.copy.0.forward": op(
            [],
            {
                "src": {"type": "slice", "value": [0, n, None]},
                "dst": {"type": "ellipsis", "value": "..."},
                "group_src": None,
            },
            [hashed(same)],
        ),
        "Functional.zero_dim.0.forward": op(
            [{**hashed("x", shape=[]), "md5": 6.25}], {}, [{**hashed("x", shape=[]), "md5": 0}]
        ),
    }
    return data if n else {**data, "Functional.d.0.forward": op([hashed(same)], {}, [hashed(same)])}


def recomputed(n):
    """The target recomputes an activation: its backward ops carry later numbers, and another dump order."""
    add, shift = tensor(1.0 + n / 1000), 0 if n else 1
    data = {}
    for k in range(2 + shift):
        data[f"Functional.gelu.{k}.forward"] = op([add], {}, [add])
        data[f"Module.act.GELU.forward.{k}"] = op([add], {}, [add])
    for k in (1, 0):
        data[f"Functional.gelu.{k + shift}.backward"] = {"input": [add], "output": [tensor(2.0 + k)]}
        data[f"Module.act.GELU.backward.{k + shift}"] = {"input": [add], "output": [tensor(2.0 + k)]}
    return data


def debug(n):
    return {
        "x.0.debug": tensor(1.0 + n),
        "deep.0.debug": {"k1": tensor(1.0), "k2": [scalar(1 + n), None, tensor(NAN)]},
        "deep_grad.0.debug": {"k1": None, "k2": [None, None, tensor(0.5, grad=False)]},
    }


def older(n):
    """A dump as releases 8.x wrote it: is_recompute, gradients of parameters without a call number, statistics of integers."""
    one = tensor(1.0)
    ids = {**tensor(500, dtype="torch.int64"), "Mean": 250.5, "Norm": 612.3724356957945}
    far = tensor(1.0 + n, 1.0 + n)

    def forward(*args, **kwargs):
        return {**op(*args, **kwargs), "is_recompute": False}

    return {
        "Functional.embedding.0.forward": forward([ids, one, scalar(2)], {}, [far]),
        "Module.model.embed.Embedding.forward.0": {**forward([ids], {}, [far]), "parameters": {"weight": one}},
        "Functional.gelu.0.forward": forward([far], {"approximate": scalar("none")}, [tensor(NAN if n == 0 else 1.0)]),
        "Functional.gelu.0.backward": {"input": [one], "output": [far], "is_recompute": False},
        "Module.model.embed.Embedding.parameters_grad": {"weight": [tensor(0.5 + n)]},
        "Module.model.embed.Embedding.backward.0": {"input": [one], "output": [None], "is_recompute": False},
    }


def ranks(n):
    """Two ranks with checksums; only what rank 1 sends is different."""
    same, other = hashed("0a1b2c3d"), hashed("ffffffff" if n else "0a1b2c3d")
    group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g0"}
    for rank, sent in enumerate((same, other)):
        yield (
            f"rank{rank}",
            {
                "Functional.linear.0.forward": op([same, same, None], {}, [sent]),
                "Distributed.all_reduce.0.forward": op([sent], {"group": group, "async_op": scalar(False)}, [other]),
                f"Distributed.{('send', 'recv')[rank]}.0.forward": op([other, scalar(1 - rank)], {}, [other]),
                "Module.fc.Linear.parameters_grad.0": {"weight": [sent]},
            },
        )


def tensor_vectors(n):
    """The rules of tensor mode, mostly one output each: {op: [(item, values)]}, where values None is an item without a file."""
    import torch

    def pair(target, golden, dtype=torch.float32):
        return torch.tensor(golden if n else target, dtype=dtype)

    one, ramp = torch.ones(2, 3), torch.arange(1.0, 1001.0)
    wrong = torch.where(torch.arange(1000) < 500, ramp * 1.1, ramp)
    single = {
        "same": torch.tensor([1.0, 2.0, 3.0]),
        "off": pair([1, 2, 3], [0, 2, 3]),
        "zero_target": pair([0, 0, 0], [1, 2, 3]),
        "zero_golden": pair([1, 2, 3], [0, 0, 0]),
        "both_zero": torch.zeros(3),
        "nan_only_target": pair([NAN, 2, 3], [1, 2, 3]),
        "nan_only_golden": pair([1, 2, 3], [NAN, 2, 3]),
        "nan_moved": pair([NAN, 2, 3], [1, NAN, 3]),
        "nan_and_inf_same": pair([NAN, 2, INF], [NAN, 2.5, INF]),
        "inf_sign": pair([INF, 2, 1], [-INF, 2, 1]),
        "other_shape": torch.ones(2 + (n == 0)),
        "squeezed": torch.ones((3,) if n else (1, 3)),
        "half": torch.ones(4, dtype=torch.float16) if n == 0 else torch.full((4,), 1.001),
        "bfloat_same": torch.tensor([1.5, -2.25, 3.0], dtype=torch.bfloat16),
        "bfloat_float": torch.tensor([1.1, -2.2, 3.3], dtype=torch.float32 if n else torch.bfloat16),
        "float8": torch.tensor([1.5, 2.0, 448.0 if n else 416.0]).to(torch.float8_e4m3fn),
        "double": pair([1.0000001, 2, 3], [1, 2, 3], torch.float64),
        "zero_dim": pair(2.0, 3.0),
        "zero_dim_nan": pair(NAN, 3.0),
        "zero_dim_inf": pair(INF, 3.0),
        "zero_dim_int": pair(5, 8, torch.int64),
        "zero_dim_bool": pair(True, False, torch.bool),
        "length_one": pair([2.0], [3.0]),
        "bools": pair([True, False, True], [True, True, True], torch.bool),
        "ints": pair([1, 2, 3], [1, 2, 4], torch.int64),
        "large_ints": pair([2**62 + 1, 2, 3], [2**62, 2, 3], torch.int64),
        "bytes": pair([1, 255, 3], [1, 254, 3], torch.uint8),
        "empty": torch.ones(0, 4),
        "complex_same": torch.tensor([1 + 2j, 3 - 1j]),
        "complex_imaginary": pair([1 + 2j, 3 - 1j], [1 + 5j, 3 + 1j], torch.complex64),
        "large": pair([1e30, 1e30, 3], [1e30, -1e30, 3], torch.float64),
        "large_float": pair([1e30, 1e30, 3], [1e30, -1e30, 3]),
        "many": ramp if n else wrong,
        "nearly": ramp if n else ramp * 1.0005,
        "transposed": torch.arange(6.0).reshape(2, 3).t() + n,
        "missing_file": torch.ones(3),
        "missing_null": None if n == 0 else torch.ones(3),
        "no_file": torch.ones(3),
    }
    ops = {f"Functional.{name}.0.forward": {"output": [value]} for name, value in single.items()}
    ops["Functional.worse_output.0.forward"] = {
        "input": [one, ramp if n else ramp * 1.00001, 3 + n],
        "kwargs": {"mask": pair([True, False], [True, True], torch.bool), "scale": 0.5},
        "output": [one, ramp if n else wrong, None],
    }
    ops["Functional.cosine_drops.0.forward"] = {"input": [one], "output": [pair([1, 1, -2], [1, 2, 3]), one]}
    ops["Functional.bad_input.0.forward"] = {"input": [pair([9, 9], [1, -1])], "output": [pair([9, 9], [1, -1])]}
    ops["Tensor.to.0.forward"] = {"input": [one], "output": [pair([NAN, 1], [1, 1])]}
    ops["Distributed._all_gather_base.0.forward"] = {
        "input": [pair([NAN, 1], [1, 1]), one],
        "output": [pair([9, 9], [1, 1])],
    }
    if n == 0:
        ops["Functional.only_here.0.forward"] = {"input": [one, 1], "output": [one]}
    return ops


def tensor_item(value, name, folder):
    """The item of dump.json; the values go into a file."""
    import torch

    if not isinstance(value, torch.Tensor):
        return None if value is None else scalar(value)
    numbers = value.detach()
    stats = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if numbers.numel() and not numbers.is_complex():
        wide = numbers.to(torch.float64) if numbers.is_floating_point() else numbers.to(torch.int64)
        stats["Max"], stats["Min"] = wide.max().item(), wide.min().item()
        if numbers.is_floating_point():
            stats["Mean"], stats["Norm"] = wide.mean().item(), wide.norm().item()
        if numbers.dtype == torch.bool:
            stats["Max"], stats["Min"] = bool(stats["Max"]), bool(stats["Min"])
    item = {
        "type": "torch.Tensor",
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        **stats,
        "requires_grad": False,
    }
    if ".no_file." in name:
        return item
    if ".missing_file." not in name:
        torch.save(value, folder / f"{name}.pt")
    return {**item, "data_name": f"{name}.pt"}


def write_tensor_dump(path, made):
    """As the old tool lays a tensor dump out: arguments by keyword have another name in their files than in dump.json."""
    folder = path / "dump_tensor_data"
    folder.mkdir(parents=True)
    data = {}
    for name, items in made.items():
        parts = {"input": items.get("input", []), "output": items["output"]}
        lists = {
            k: [tensor_item(v, f"{name}.{k}.{i}", folder) for i, v in enumerate(values)] for k, values in parts.items()
        }
        kwargs = {k: tensor_item(v, f"{name}.kwargs.{k}", folder) for k, v in items.get("kwargs", {}).items()}
        data[name] = op(lists["input"], kwargs, lists["output"])
    (path / "dump.json").write_text(json.dumps(dump(data, "L1", "tensor"), indent=1), encoding="utf-8")


STACKS = {
    "0": [
        ["Functional.same.0.forward", "Functional.scalar_arg.0.forward"],
        [
            "File /site-packages/torch/nn/functional.py, line 9, in relu, \n return torch.relu(x)",
            "File /home/u/model.py, line 12, in forward, \n x = f(\"it's\", 'a;b')",
        ],
    ]
}

OLDER_STACKS = {
    "Functional.gelu.0.forward": ["File /home/u/model.py, line 12, in forward, \n x = gelu(x)"],
    "Module.model.embed.Embedding.forward.0": ["File /home/u/model.py, line 11, in forward, \n x = self.embed(x)"],
}

CASES = {
    "vectors": (vectors, "dump.json", "L1", STACKS, []),
    "vectors_xlsx": (vectors, "dump.json", "L1", STACKS, ["--xlsx"]),
    "checksums": (checksums, "dump.json", "L1", None, []),
    "recomputed": (recomputed, "dump.json", "mix", None, []),
    "debug": (debug, "debug.json", "debug", None, []),
    "older_layout": (lambda n: [("rank", older(n))], "step0", "mix", OLDER_STACKS, []),
    "tensor_vectors": (tensor_vectors, "dump.json", "tensor", None, []),
    "ranks_checksums": (ranks, "step0", "mix", None, []),
}


def write_dump(folder, data, name, level, stacks):
    folder.mkdir(parents=True)
    written = dump(data, level)
    if stacks is OLDER_STACKS:
        written.pop("framework")
    (folder / name).write_text(json.dumps(written, indent=1), encoding="utf-8")
    if stacks:
        (folder / "stack.json").write_text(json.dumps(stacks, indent=1), encoding="utf-8")


def write_side(folder, made, name, level, stacks):
    """One file, or the ranks of a step."""
    if level == "tensor":
        return write_tensor_dump(folder, made)
    if name.endswith(".json"):
        return write_dump(folder, made, name, level, stacks)
    for rank, data in made:
        write_dump(folder / name / rank, data, "dump.json", level, stacks)


def main(old_command, only):
    for case, (make, name, level, stacks, options) in CASES.items():
        if only and case not in only:
            continue
        folder = HERE / case
        shutil.rmtree(folder, ignore_errors=True)
        write_side(folder / "target", make(0), name, level, stacks)
        write_side(folder / "golden", make(1), name, level, stacks)
        (folder / "options.json").write_text(json.dumps({"file": name, "options": options}) + "\n", encoding="utf-8")
        with tempfile.TemporaryDirectory() as out:
            command = [
                old_command,
                "compare",
                "-tp",
                str(folder / "target" / name),
                "-gp",
                str(folder / "golden" / name),
                "-o",
                out,
            ]
            subprocess.run(command + options, check=True)
            (folder / "expected").mkdir()
            for path in sorted(Path(out).iterdir()):
                shutil.copy(path, folder / "expected" / re.sub(r"_20\d{12}", "_TIME", path.name))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])

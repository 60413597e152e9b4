"""What acc_check says of the operators of torch on this device: a call for each sample of torch's own test inputs (OpInfo).

usage: python publish_op_accuracy.py DIRECTORY [--samples N] [--first N] [--seed N] [--sizes XS,S,M,L] [--dtypes NAME,...] [--ops NAME,...]
       [--device cuda:0] [--processes N]

Takes N test inputs of each operator and dtype, from number --first on, drawn with a seed and with the sizes that torch's inputs are made of
(3,5,10,20 as torch has them). Writes a tensor dump of the calls, forward and backward, checks it, and prints the table of
docs/en/lab/acc_check.md: operators by verdict and dtype, and the names of those that rounding does not explain.
"""

import argparse
import csv
import importlib
import json
import os
import subprocess
import sys
import types
import unittest
from collections import Counter, defaultdict
from pathlib import Path

import torch

# torch's helpers import expecttest for what is not used here.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))

op_db = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MOST_ELEMENTS = 100_000
ORDER = ("right", "round-off", "known", "suspicious", "wrong")  # known: a kernel on the list of inaccurate ones
# Results that differ from run to run, are memory that nobody wrote, or are not determined by the arguments.
EXCLUDED = {
    "as_strided": "reads memory by its layout, which a wider dtype does not have",
    "as_strided_scatter": "the same",
    "as_strided_copy": "the same",
    "bernoulli": "random",
    "cauchy": "random",
    "empty": "memory that nobody wrote",
    "empty_like": "memory that nobody wrote",
    "empty_permuted": "memory that nobody wrote",
    "empty_strided": "memory that nobody wrote",
    "new_empty": "memory that nobody wrote",
    "new_empty_strided": "memory that nobody wrote",
    "linalg.svd": "singular vectors are determined up to a sign or a rotation",
    "svd": "the same",
    "svd_lowrank": "random",
    "pca_lowrank": "random",
    "linalg.eig": "eigenvectors are determined up to a factor",
    "linalg.eigh": "the same",
    "linalg.qr": "determined up to signs where the rank is not full",
    "qr": "the same",
    "geqrf": "the same",
    "linalg.householder_product": "the same",
    "linalg.lstsq": "not unique where the rank is not full",
    "view": "a view by its layout",
    "view_as": "the same",
}


class Unknown(Exception):
    """An argument that a dump does not describe."""


class Dump:
    """Calls as a dump of task tensor has them."""

    def __init__(self, folder):
        self._files = folder / "dump_tensor_data"
        self._files.mkdir(parents=True)
        self._path = folder / "dump.json"
        self.data = {}

    def leaf(self, value, name):
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided or value.is_quantized or value.numel() > MOST_ELEMENTS:
                raise Unknown
            torch.save(value.detach().contiguous().clone(), self._files / f"{name}.pt")
            shape, floats = list(value.shape), value.is_floating_point() or value.is_complex()
            return {
                "type": "torch.Tensor",
                "dtype": str(value.dtype),
                "shape": shape,
                "requires_grad": floats,
                "data_name": f"{name}.pt",
            }
        if value is None:
            return None
        if isinstance(value, (bool, int, float, str)):
            return {"type": type(value).__name__, "value": value}
        if isinstance(value, (torch.dtype, torch.memory_format)):
            return {"type": type(value).__name__, "value": str(value)}
        if isinstance(value, (list, tuple)):
            return [self.leaf(part, f"{name}.{i}") for i, part in enumerate(value)]
        if isinstance(value, slice):
            return {"type": "slice", "value": [value.start, value.stop, value.step]}
        raise Unknown

    def add(self, full, sample, result):
        args = [self.leaf(v, f"{full}.forward.input.{i}") for i, v in enumerate((sample.input, *sample.args))]
        kwargs = {k: self.leaf(v, f"{full}.forward.input.{k}") for k, v in sample.kwargs.items()}
        results = result if isinstance(result, (list, tuple)) else [result]
        outputs = [self.leaf(v, f"{full}.forward.output.{i}") for i, v in enumerate(results)]
        entry = {"input_args": args, "input_kwargs": kwargs, "output": outputs}
        grads = [torch.randn_like(v) for v in results if isinstance(v, torch.Tensor) and v.requires_grad]
        self.data[f"{full}.forward"] = entry
        if grads:
            inputs = [self.leaf(v, f"{full}.backward.input.{i}") for i, v in enumerate(grads)]
            self.data[f"{full}.backward"] = {"input": inputs, "output": []}

    def write(self):
        head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(self._files)}
        self._path.write_text(json.dumps({**head, "data": self.data}))
        return self._path


def kind_and_name(op):
    for prefix, kind in (
        ("nn.functional.", "Functional"),
        ("_refs.", None),
        ("linalg.", "Torch"),
        ("special.", "Torch"),
        ("fft.", "Torch"),
    ):
        if op.name.startswith(prefix):
            return kind, op.name[len(prefix) :] if kind == "Functional" else op.name
    return ("Torch", op.name) if hasattr(torch, op.name) else ("Tensor", op.name)


def calls_of(op, dtype, args):
    torch.manual_seed(args.seed)
    taken = -args.first
    samples = iter(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd))
    while taken < args.samples:
        try:
            sample = next(samples)
            result = op.op(sample.input, *sample.args, **sample.kwargs)
        except StopIteration:
            return
        except (RuntimeError, TypeError, ValueError, AssertionError, IndexError):
            taken += args.sizes != ""  # inputs that cannot be made in these sizes come no more
            continue
        taken += 1
        if taken > 0:
            yield sample, result


def resize(sizes):
    """Puts other sizes into the places where the functions that make torch's test inputs look them up."""
    own = dict(zip(("XS", "S", "M", "L"), (3, 5, 10, 20)))
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal.") and isinstance(module, types.ModuleType):
            for key, new in zip(own, sizes):
                if vars(module).get(key) == own[key]:
                    setattr(module, key, new)


def make(folder, args):
    """Makes the dump.

    Returns the path of the dump and {full name: (operator, dtype)}."""
    dump, of = Dump(folder), {}
    dtypes = [getattr(torch, name) for name in args.dtypes.split(",")] if args.dtypes else DTYPES
    for op in op_db:
        kind, name = kind_and_name(op)
        if kind is None or op.name in EXCLUDED or name.count(".") > 1:
            continue
        if args.ops and op.name not in args.ops.split(","):
            continue
        for dtype in dtypes:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            for sample, result in calls_of(op, dtype, args):
                full = f"{kind}.{name}.{len(of)}"
                try:
                    dump.add(full, sample, result)
                except Unknown:
                    continue
                of[full] = (op.name, str(dtype).rpartition(".")[2])
    return dump.write(), of


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--dtypes", default="")
    parser.add_argument("--ops", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args()


def main():
    args = parsed()
    if args.sizes:
        resize([int(size) for size in args.sizes.split(",")])
    root = args.root
    path, of = make(root / "dump", args)
    command = os.environ.get("MSPROBE_BIN", "msprobe")
    check = ["multi_acc_check", "-n", str(args.processes)] if args.processes > 1 else ["acc_check"]
    check += ["-api_info", path, "-o", root / "out", "-d", args.device, "--json"]
    done = subprocess.run([command, *check], stdout=subprocess.PIPE)
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    summary = json.loads(done.stdout)
    worst, figures = defaultdict(dict), {}
    with open(summary["float64"], encoding="utf-8-sig", newline="") as file:
        for name, _, verdict, error, limit, known, near, bound, rule, *_ in list(csv.reader(file))[1:]:
            full, _, part = name.partition(".forward" if ".forward" in name else ".backward")
            key = of[full]
            verdict = "known" if known else verdict
            if ORDER.index(verdict) >= ORDER.index(worst[key[1]].get(key[0], "right")):
                worst[key[1]][key[0]] = verdict
                figures[key] = (name, error, limit, near, bound, rule)
    print("| dtype | operators |", " | ".join(ORDER), "|\n|---|---|---|---|---|---|---|")
    for dtype, ops in worst.items():
        counts = Counter(ops.values())
        print(f"| {dtype} | {len(ops)} |", " | ".join(str(counts[v]) for v in ORDER), "|")
    for dtype, ops in worst.items():
        for op, verdict in sorted(ops.items()):
            if verdict in ORDER[2:]:
                print(dtype, op, verdict, *figures[op, dtype])
    with open(summary["result"], encoding="utf-8-sig", newline="") as file:
        skipped = Counter(row[3][:90] for row in list(csv.reader(file))[1:] if row[1] == "SKIP")
    print(len(of), "calls of", len({op for op, _ in of.values()}), "operators;", sum(skipped.values()), "skipped:")
    for why, count in skipped.most_common(25):
        print(f"  {count} {why}")


if __name__ == "__main__":
    main()

"""Makes two runs of many ranks, and measures `msprobe compare` on them.

python bench/rank_scale.py make DIR --ranks 1024 --distinct 64 --nodes 20000
python bench/rank_scale.py run DIR --repeat 3 -- --rows differing

Ranks beyond --distinct are hard links (--copies: copies) of the files of others: 1,024 ranks of 20,000 nodes would take 33 GB.
Rank 17, which has files of its own, goes wrong in layer 0; half of the others differ by round-off, half are equal to the golden run.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
from measure import command_of

GUILTY = 17
PARTS = (
    ("input_layernorm", "RMSNorm", 1),
    ("self_attn.q_proj", "Linear", 1),
    ("self_attn.k_proj", "Linear", 1),
    ("self_attn.v_proj", "Linear", 1),
    ("self_attn.o_proj", "Linear", 1),
    ("post_attention_layernorm", "RMSNorm", 1),
    ("mlp.gate_proj", "Linear", 1),
    ("mlp.up_proj", "Linear", 1),
    ("mlp.down_proj", "Linear", 1),
)
STATS = ("Max", "Min", "Mean", "Norm")


def ops_of(nodes):
    """(name, parent, tensors of the input, whether it is forward) of so many ops of a LLaMA."""
    layers = max(1, nodes // (len(PARTS) * 4))
    for layer in range(layers):
        for at, (part, kind, inputs) in enumerate(PARTS):
            module = f"Module.model.layers.{layer}.{part}.{kind}.forward.0"
            yield f"Functional.{kind.lower()}.{layer * len(PARTS) + at}.forward", module, inputs + 1, True
            yield module, None, inputs, True
    for layer in reversed(range(layers)):
        for at, (part, kind, inputs) in reversed(list(enumerate(PARTS))):
            module = f"Module.model.layers.{layer}.{part}.{kind}.backward.0"
            yield module, None, inputs, False
            yield f"Functional.{kind.lower()}.{layer * len(PARTS) + at}.backward", module, inputs + 1, False


class Model:
    """The text of dump.json with a place for each statistic, and the values of the golden run."""

    def __init__(self, nodes):
        parts, self.construct, self.guilty, tensors = [], {}, None, 0
        names = []
        for name, parent, inputs, forward in ops_of(nodes):
            names.append(name)
            self.construct[name] = parent
            items = [self.item() for _ in range(inputs + 1)]
            first, last = ("input_args", "output") if forward else ("input", "output")
            kwargs = '   "input_kwargs": {},\n' if forward else ""
            given = ",\n".join(items[:-1])
            parts.append(
                f'  "{name}": {{\n   "{first}": [\n{given}\n   ],\n{kwargs}   "{last}": [\n{items[-1]}\n   ]\n  }}'
            )
            if "linear.1.forward" in name:
                self.guilty = tensors + inputs  # its output
            tensors += inputs + 1
        head = '{\n "task": "statistics",\n "level": "mix",\n "framework": "pytorch",\n "dump_data_dir": null,\n "data": {\n'
        self.text = head + ",\n".join(parts) + "\n }\n}\n"
        self.tensors = tensors
        frames = ["File /opt/train/model.py, line 93, in forward, \n return self.down_proj(x)"] * 6
        self.stack = json.dumps({str(i): [names[i::8], frames] for i in range(8)}, indent=1)
        self.construct = json.dumps(self.construct, indent=1)

    @staticmethod
    def item():
        lines = [
            '"type": "torch.Tensor"',
            '"dtype": "torch.float32"',
            '"shape": [\n      2,\n      4096,\n      1024\n     ]',
        ]
        lines += [f'"{stat}": %s' for stat in STATS] + ['"requires_grad": true']
        return "    {\n     " + ",\n     ".join(lines) + "\n    }"

    def values(self, seed):
        rng = np.random.default_rng(seed)
        scale = np.exp(rng.normal(0, 1, (self.tensors, 1)))
        out = np.concatenate([scale * 4, -scale * 4, scale * 0.01, scale * 2896], axis=1)
        return out * (1 + 0.01 * rng.random((self.tensors, len(STATS))))

    def write(self, directory, values):
        directory.mkdir(parents=True)
        texts = tuple(map(repr, values.astype(np.float32).astype(np.float64).ravel().tolist()))
        (directory / "dump.json").write_text(self.text % texts)
        (directory / "construct.json").write_text(self.construct)
        (directory / "stack.json").write_text(self.stack)

    def write_pair(self, work, rank):
        golden = self.values(rank)
        self.write(work / "golden" / "step0" / f"rank{rank}", golden)
        rng = np.random.default_rng(10_000 + rank)
        if rank % 2:
            golden *= 1 + 1e-7 * rng.normal(0, 1, golden.shape)
        if rank == GUILTY:
            golden[self.guilty :] *= 1 + 0.05 * rng.random(golden[self.guilty :].shape)
        self.write(work / "target" / "step0" / f"rank{rank}", golden)


def make(args):
    model = Model(args.nodes)
    distinct = [GUILTY, *(r for r in range(args.distinct) if r != GUILTY)][: args.distinct]
    for rank in distinct:
        model.write_pair(args.dir, rank)
    others = [r for r in distinct if r != GUILTY]
    for rank in range(args.ranks):
        if rank in distinct:
            continue
        for side in ("target", "golden"):
            of = args.dir / side / "step0" / f"rank{others[rank % len(others)]}"
            to = of.with_name(f"rank{rank}")
            to.mkdir()
            for file in of.iterdir():
                (shutil.copyfile if args.copies else os.link)(file, to / file.name)


def run(args, options):
    """Wall and processor seconds, the peak, when the origin came, and what was written."""
    out = args.dir / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        command_of("ours"),
        "compare",
        "-tp",
        args.dir / "target" / "step0",
        "-gp",
        args.dir / "golden" / "step0",
    ]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [str(c) for c in command] + ["-o", str(out), *options], stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    )
    origin, lines = None, []
    for line in process.stdout:
        lines.append(line)
        if origin is None and line.startswith("Origin:"):
            origin = time.perf_counter() - begin
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit("".join(lines[-20:]))
    written = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    print(
        f"{seconds:.2f} s, processor {usage.ru_utime + usage.ru_stime:.2f} s, origin after {origin or -1:.2f} s, "
        f"peak {usage.ru_maxrss / 1024:.0f} MB, {written / 1e6:.1f} MB in {sum(1 for f in out.rglob('*') if f.is_file())} files, "
        f"{len(lines)} lines"
    )
    print("".join(lines[:4]), end="")
    shutil.rmtree(out, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="what", required=True)
    maker, runner = parts.add_parser("make"), parts.add_parser("run")
    for part in (maker, runner):
        part.add_argument("dir", type=pathlib.Path)
    maker.add_argument("--ranks", type=int, default=1024)
    maker.add_argument("--distinct", type=int, default=64)
    maker.add_argument("--nodes", type=int, default=20_000)
    maker.add_argument("--copies", action="store_true", help="copies instead of hard links")
    runner.add_argument("--repeat", type=int, default=1)
    words = sys.argv[1:]
    behind = words.index("--") if "--" in words else len(words)  # options of msprobe compare
    args = parser.parse_args(words[:behind])
    if args.what == "make":
        return make(args)
    for _ in range(args.repeat):
        run(args, words[behind + 1 :])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()

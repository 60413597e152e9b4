"""Graph files for the part `page` of bench/run.py: a comparison of large dumps in which one module has 10,000 calls."""

import json
import shutil
import subprocess

from measure import command_of

WIDE = "Module.wide.Wide.forward.0"
CALLS = 10_000


def tensor(i):
    value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "requires_grad": False}
    return {**value, "Max": 1.5 + i * 1e-3, "Min": -1.25, "Mean": 0.03125, "Norm": 12.5 + i * 1e-3}


def calls(shift):
    for i in range(CALLS):
        drift = shift if i % 100 == 0 else 0.0
        yield (
            f"Functional.wide_op.{i}.forward",
            {"input_args": [tensor(i)], "input_kwargs": {}, "output": [tensor(i + drift)]},
        )


def append(path, closing, text):
    """Puts `text` before the `closing` at the end of a file."""
    with open(path, "r+b") as f:
        f.seek(-256, 2)
        tail = f.read()
        at = tail.rindex(closing.encode())
        f.seek(at - len(tail), 2)
        f.truncate()
        f.write(text.encode() + tail[at:])


def widen(rank, shift):
    """Adds the wide module to the dump of a rank, as the last thing that ran."""
    ops = [(name, data) for name, data in calls(shift)]
    ops.append((WIDE, {"input_args": [tensor(0)], "input_kwargs": {}, "output": [tensor(1)]}))
    append(rank / "dump.json", "\n }", "".join(f',\n  "{name}": {json.dumps(data)}' for name, data in ops))
    parents = "".join(f',\n "{name}": "{WIDE}"' for name, _ in ops[:-1]) + f',\n "{WIDE}": null'
    append(rank / "construct.json", "\n}", parents)


def page_file(large, nodes, work, tool="ours"):
    """The .vis.db file in a directory `run`, made once and kept; the dumps that it is made of are not."""
    target = work / f"page{nodes}_{tool}"
    if not target.exists():
        source, dumps, part = large.make_large(nodes), work / f"page{nodes}_dumps", work / f"page{nodes}_{tool}.part"
        shutil.rmtree(dumps, ignore_errors=True)
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(source, dumps)
        for side, shift in (("bench", 0.0), ("problem", 0.5)):
            widen(dumps / side / "step0" / "rank0", shift)
        ranks = [dumps / side / "step0" / "rank0" for side in ("problem", "bench")]
        command = [command_of(tool), "graph_visualize", "-tp", ranks[0], "-gp", ranks[1], "-o", part / "run"]
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(dumps)
        part.rename(target)
    return next(target.glob("run/*.vis.db"))

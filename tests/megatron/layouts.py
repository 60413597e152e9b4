"""What the tests of layouts share: the layouts and what stands for each on one rank, a training, a graph, what is asked of it."""

import json
import sqlite3
from pathlib import Path
from typing import NamedTuple

from graph_cases import run
from launch import run_python

HERE = Path(__file__).resolve().parent


class Pair(NamedTuple):
    """A layout and what stands for it on one rank: options of train.py, and of graph_visualize."""

    layout: str
    merge: tuple
    one: str = ""


ONE, TP2, PP2, TP2PP2 = ("1", "1", "1"), ("2", "2", "1"), ("2", "1", "2"), ("4", "2", "2")
GPT = "gelu=1,bias=1,norm=LayerNorm,positions=learned_absolute,groups=4,tied=1"  # as GPT-2 and GPT-3 were
PAIRS = {
    "tp2": Pair("tp=2", TP2),
    "pp2": Pair("pp=2", PP2),
    "tp2pp2": Pair("tp=2,pp=2", TP2PP2),
    "tp2sp": Pair("tp=2,sp=1", TP2),
    "vpp2": Pair("pp=2,vpp=2", (*PP2, "--vpp", "2", "1")),
    "ep2": Pair(
        "experts=4,ep=2,dp=2,per_token=1", ("2", "1", "1", "--ep", "2", "1"), "experts=4,batches=2,per_token=1"
    ),
    # Each rank's loss is a mean over its own tokens: gradients are twice as large until they are averaged.
    "ep2_mean": Pair("experts=4,ep=2,dp=2", ("2", "1", "1", "--ep", "2", "1"), "experts=4,batches=2"),
    # Experts without tensor parallelism of their own lie over the ranks of that of the rest.
    "ep2_over_tp2": Pair("tp=2,sp=1,experts=4,ep=2", ("2", "2", "1", "--ep", "2", "1"), "experts=4,custom_norm=1"),
    "ep2_over_tp2dp2": Pair(
        "tp=2,sp=1,experts=4,ep=2,dp=2,per_token=1",
        ("4", "2", "1", "--ep", "2", "1"),
        "experts=4,batches=2,per_token=1,custom_norm=1",
    ),
    "etp2": Pair("tp=2,sp=1,experts=4,etp=2", TP2, "experts=4,custom_norm=1"),
    "distributed_optimizer": Pair("tp=2,distributed_optimizer=1", TP2, "distributed_optimizer=1"),
    "overlap": Pair("tp=2,overlap=1", TP2),
    "tied": Pair("tp=2,pp=2,tied=1", TP2PP2, "tied=1"),
    "uneven": Pair("pp=2,first_layers=1", PP2),
    "gpt_pp2": Pair(f"pp=2,{GPT}", PP2, GPT),
    "gpt_tp2pp2": Pair(f"tp=2,pp=2,{GPT}", TP2PP2, GPT),
    "qk_norm": Pair("tp=2,qk_norm=1,qkv_bias=0", TP2, "qk_norm=1,qkv_bias=0"),
    "experts_pp2": Pair("experts=4,pp=2", PP2, "experts=4"),
}


def train(python, directory, *runs):
    """Each run: (name, layout, further options)."""
    arguments = []
    for name, layout, *options in runs:
        arguments += [*(["--then"] if arguments else []), directory / name, "--layout", layout, *options]
    run_python(["-W", "ignore", HERE / "train.py", *arguments], python=python, cwd=directory, ours=False, fresh=True)


def visualize(target, golden, merge, out, golden_merge=ONE, step=0):
    options = list(merge[3:])
    for name, *sizes in zip(("--rank_size", "--tp", "--pp"), merge, golden_merge):
        options += [name, *sizes]
    sides = ["-tp", target / f"step{step}", "-gp", golden / f"step{step}"]
    command = ["graph_visualize", *sides, "-o", out, "--json", *options]
    return json.loads(run(command).stdout)


def refusal(python, directory, level, target, golden, sizes):
    """What a graph of two layouts says that it refuses; `sizes`: ranks, tp, pp and ep of the target."""
    train(python, directory, ("target", target, "--level", level), ("golden", golden, "--level", level))
    command = ["graph_visualize", "-tp", directory / "target" / "step0", "-gp", directory / "golden" / "step0"]
    for option, size in zip(("--rank_size", "--tp", "--pp", "--ep"), sizes):
        command += [option, size, "1"]
    done = run([*command, "-o", directory], check=False)
    assert done.returncode == 3, done.stderr
    return done.stderr


def unmatched_modules(summary):
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    try:
        rows = db.execute("select node_name, matched_node_link from tb_nodes where node_type = 0").fetchall()
    finally:
        db.close()
    return [name for name, link in rows if name.startswith("Module.") and link in ("[]", "", None)]


def assert_silent(summary, name):
    verdict = summary["verdict"]
    assert verdict["origins"] == [], verdict["text"]["en"]
    assert (summary["error"], summary["suspect_ranks"]) == (0, [])
    assert [f for f in summary["findings"] if f["kind"] in ("suspect_rank", "replica", "layout")] == []
    # The copy of a tied embedding on the last stage has a gradient of its own.
    left = [
        node
        for node in unmatched_modules(summary)
        if not (name.startswith(("tied", "gpt")) and ".parameters_grad." in node)
    ]
    assert left == []


def named(origins, path):
    return bool(origins) and path in f"{origins[0]['module']}.{origins[0]['op']}"


def has_rank(origin, fault):
    """The rank of a fault that one has, and none of one that all have. Rows in another order leave no trace in statistics of a part."""
    at = {rank % 2 for rank in origin["ranks"]}
    if "_rank" not in fault or (fault == "heads_rank0" and not at):
        return not at
    return at == {int(fault[-1])}

"""Networks written in both frameworks: with equal weights nothing is called a bug, and planted bugs are named."""

import contextlib
import csv
import fcntl
import os
import re
import sqlite3
import subprocess
import tarfile

import pytest
from runs import (
    BUGS,
    FRAMEWORKS,
    FUSED,
    HELD_OUT,
    HERE,
    LATER,
    NETWORKS,
    OTHER,
    REPO,
    WAYS,
    answer_of,
    bug_result,
    clean_result,
    compare,
    dump_of,
    find_command,
    plan_of,
    record,
)

LEAST_EQUAL = 0.95  # of the pairs of ops of clean runs
# Of the functions that compute; the rest are those of layers that are fused on one side only, and of calls that one side
# makes where the other has a loop.
LEAST_PAIRED = 0.65
LEAST_OF_EIGHT = 0.95
EIGHT = ("llama", "bert", "conv", "gru", "moe", "vit", "fused_attention", "lora")
KNOWN_MISSES = {"ms_concat_order", "ms_exchanged_state"}
# Recorded once, without call stacks, so that `make test` needs no MindSpore: keep.py makes it.
KEPT = HERE / "kept.tar.xz"
KEPT_PAIRS = (("vit", "vit"), ("llama_fused", "llama"), ("llama", "llama_fused"))
KEPT_BUGS = ("ms_missing_scale", "pt_no_positions", "pt_missing_scale")


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    root = tmp_path_factory.mktemp("kept")
    with tarfile.open(KEPT) as archive:
        archive.extractall(root)
    return root


@pytest.fixture(scope="session")
def runs_of_both(mindspore_python, tmp_path_factory):
    """Recorded once for all processes of the test run."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "frameworks_recorded"
    with open(f"{root}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            part = root.with_suffix(".part")
            record(part, mindspore_python)
            part.rename(root)
    return root


def check_clean(root, mindspore, pytorch, level, task, out):
    for target in FRAMEWORKS:
        sides = {
            "mindspore": dump_of(root, "mindspore", mindspore, level, task),
            "pytorch": dump_of(root, "pytorch", pytorch, level, task),
        }
        result = clean_result(sides[target], sides[OTHER[target]], out / target)
        assert (result.bugs, result.suspicious, result.named) == (0, 0, ""), (target, result)
        assert result.equal >= LEAST_EQUAL * result.pairs, (target, result)
        least = LEAST_OF_EIGHT if mindspore == pytorch and mindspore in EIGHT else LEAST_PAIRED
        assert level == "L0" or result.paired >= least * result.computing, (target, result)


@pytest.mark.parametrize(("mindspore", "pytorch"), KEPT_PAIRS)
def test_clean_pairs_of_kept_dumps(kept, tmp_path, mindspore, pytorch):
    check_clean(kept, mindspore, pytorch, "mix", "statistics", tmp_path)


@pytest.mark.parametrize("name", KEPT_BUGS)
def test_bugs_of_kept_dumps(kept, tmp_path, name):
    (bug,) = (bug for bug in (*BUGS, *HELD_OUT, *LATER) if bug.name == name)
    result = bug_result(kept, bug, tmp_path)
    assert result.right, result


def test_layers_that_are_joined_are_compared_as_one(kept, tmp_path):
    """Rows of query, key and value together, with the shapes of the one product."""
    target, golden = dump_of(kept, "mindspore", "llama_fused"), dump_of(kept, "pytorch", "llama")
    compare(target, golden, tmp_path)
    (path,) = tmp_path.glob("compare_result_*.csv")
    with open(path, newline="") as file:
        rows = {row[0]: row for row in csv.reader(file)}
    row = rows["Cell.model.layers.0.attention.w_qkv.Dense.forward.0.output.0"]
    assert [name.split(".")[-6] for name in row[1].split(";  ")] == ["q_proj", "k_proj", "v_proj"]
    assert row[4] == row[5] == "[2, 10, 64]"


def test_the_suggested_mapping_is_read_again(kept, tmp_path):
    """As a layer mapping, and the item pairs that come of it as a data mapping."""
    target, golden = dump_of(kept, "mindspore", "vit"), dump_of(kept, "pytorch", "vit")
    suggested = tmp_path / "layers.yaml"
    (alone,) = compare(target, golden, tmp_path / "alone", "--suggest_mapping", suggested)["pairs"]
    assert "transformer.layers: blocks" in suggested.read_text()
    by_layers = compare(target, golden, tmp_path / "layers", "-lm", suggested)
    (items,) = (tmp_path / "layers").glob("data_mapping_*.yaml")
    by_items = compare(target, golden, tmp_path / "items", "-dm", items)
    for report in (by_layers, by_items):
        (pair,) = report["pairs"]
        assert answer_of(report).kind == "none"
        assert pair["matched_ops"] >= 0.98 * alone["matched_ops"]


@pytest.mark.parametrize("target", FRAMEWORKS)
def test_both_directions_pair_the_same_modules(kept, target):
    plan = plan_of(dump_of(kept, target, "vit"), dump_of(kept, OTHER[target], "vit"))
    pairs = {
        tuple(pair) for pair in plan["pairs"] if pair[0].startswith(("Cell.", "Module.")) and ".forward" in pair[0]
    }
    pairs = pairs if target == "mindspore" else {pair[::-1] for pair in pairs}
    assert ("Cell.transformer.layers.1.1.cell.FeedForward.forward.0", "Module.blocks.1.mlp.Mlp.forward.0") in pairs
    assert len(pairs) == 28


@pytest.mark.parametrize(("mindspore", "pytorch"), KEPT_PAIRS)
@pytest.mark.parametrize("target", FRAMEWORKS)
def test_graphs_judge_as_tables(kept, tmp_path, mindspore, pytorch, target):
    """The color of each matched node is the worst result of its rows, though operands stand in another order."""
    sides = {"mindspore": dump_of(kept, "mindspore", mindspore), "pytorch": dump_of(kept, "pytorch", pytorch)}
    compare(sides[target], sides[OTHER[target]], tmp_path)
    (path,) = tmp_path.glob("compare_result_*.csv")
    worst = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            op = re.match(
                r".*\.(forward|backward|parameters_grad)(\.\d+)?(?=\.)", row["NPU Name"].split(";")[0]
            ).group()
            if row["Bench Name"] != "N/A":
                worst[op] = max(worst.get(op, 0), {"pass": 0, "warning": 0.5, "error": 1}[row["Result"]])
    command = [find_command(), "graph_visualize", "-tp", sides[target] / "rank", "-gp", sides[OTHER[target]] / "rank"]
    subprocess.run([str(part) for part in [*command, "-o", tmp_path]], capture_output=True, text=True, check=True)
    (path,) = tmp_path.glob("*.vis.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        nodes = db.execute("SELECT node_name, precision_index FROM tb_nodes WHERE data_source = 'NPU'").fetchall()
    colors = {name: color for name, color in nodes if color is not None and name in worst}
    assert len(colors) > 100
    assert {name: (color, worst[name]) for name, color in colors.items() if color != worst[name]} == {}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_about_these_cases(language):
    text = (REPO / "docs" / language / "compare" / "frameworks.md").read_text(encoding="utf-8")
    assert [bug.name for bug in (*BUGS, *HELD_OUT, *LATER) if f"\n| {bug.name} |" not in text] == []
    assert [network for network in NETWORKS if f"\n| {network} |" not in text] == []


@pytest.mark.deep
@pytest.mark.parametrize(("level", "task"), WAYS)
@pytest.mark.parametrize(("mindspore", "pytorch"), [*((n, n) for n in NETWORKS), *FUSED])
def test_clean_pairs(runs_of_both, tmp_path, mindspore, pytorch, level, task):
    check_clean(runs_of_both, mindspore, pytorch, level, task, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("bug", [*BUGS, *HELD_OUT, *LATER], ids=lambda bug: bug.name)
def test_a_planted_bug_is_named(runs_of_both, tmp_path, bug):
    result = bug_result(runs_of_both, bug, tmp_path)
    assert result.right == (bug.name not in KNOWN_MISSES), result

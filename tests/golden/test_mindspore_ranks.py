"""Several ranks of MindSpore: links between them, merged graphs, and both against PyTorch."""

import json
import re
import sqlite3

import pytest
from graph_cases import golden_set, run
from mindspore_twin import torch_text, write_twins

pytestmark = pytest.mark.deep
LAYOUT = ["--rank_size", "4", "1", "--tp", "2", "1", "--pp", "2", "1"]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """{name: directory} of runs as MindSpore writes them."""
    root = tmp_path_factory.mktemp("twins")
    data = golden_set() / "data"
    names = ("tp2pp2/bench", "tp2dp2/bench", "pp2_batch/bench", "one_mix_stat/bench")
    return {name: write_twins(data / name, root / name) for name in names}


def graph(out, *args):
    done = run(["graph_visualize", *args, "-o", out, "--json"], env={"MSPROBE_PLAIN": "1"})
    summary = json.loads(done.stdout)
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    db.row_factory = sqlite3.Row
    rows = db.execute("SELECT * FROM tb_nodes ORDER BY data_source, step, rank, node_order").fetchall()
    db.close()
    return summary, [dict(r) for r in rows]


def place(row):
    return row["data_source"], row["step"], row["rank"], torch_text(row["node_name"])


@pytest.mark.parametrize("name", ["tp2pp2/bench", "tp2dp2/bench", "pp2_batch/bench"])
def test_ranks_are_linked_as_those_of_pytorch(twins, tmp_path, name):
    """Groups that only have a name: the same partners, and no finding about calls that do not fit together."""
    theirs, want = graph(tmp_path / "a", "-tp", golden_set() / "data" / name)
    ours, got = graph(tmp_path / "b", "-tp", twins[name])
    links = {place(r): json.loads(r["matched_distributed"]) for r in want}
    mine = {place(r): json.loads(torch_text(r["matched_distributed"])) for r in got}
    assert sum(bool(link) for link in links.values()) > 15
    assert mine == links
    assert [place(r) for r in got if r["is_distributed"]] == [place(r) for r in want if r["is_distributed"]]
    assert ours["links"] == theirs["links"] and len(ours["findings"]) == len(theirs["findings"])


@pytest.mark.parametrize("name", ["tp2pp2/bench", "pp2_batch/bench"])
def test_merged_ranks_are_those_of_pytorch(twins, tmp_path, name):
    sizes = ["--rank_size", "4", "--tp", "2", "--pp", "2"] if "tp2" in name else ["--rank_size", "2", "--tp", "1", "--pp", "2"]
    _, want = graph(tmp_path / "a", "-tp", golden_set() / "data" / name, *sizes)
    _, got = graph(tmp_path / "b", "-tp", twins[name], *sizes)
    assert [place(r) for r in got] == [place(r) for r in want]
    for a, b in zip(want, got):
        assert torch_text(b["up_node"]) == a["up_node"]
        assert torch_text(b["matched_distributed"]) == a["matched_distributed"]
        theirs, ours = (json.loads(r["output_data"]) for r in (a, b))
        assert [f["Norm"] for f in theirs.values()] == [f["Norm"] for f in ours.values()], a["node_name"]


@pytest.mark.parametrize("golden", ["bench", "weight"])
@pytest.mark.parametrize("mapped", [False, True], ids=["structure", "lm"])
def test_merged_ranks_against_the_other_framework(twins, tmp_path, golden, mapped):
    """Four ranks of MindSpore against one of PyTorch: matched and judged as four of PyTorch against it."""
    data = golden_set() / "data"
    one = data / "one_mix_stat" / golden
    rules = tmp_path / "rules.yaml"
    rules.write_text("TopLayer:\n  0.module: module\n")
    options = [*LAYOUT, *(["-lm", rules] if mapped else [])]
    _, want = graph(tmp_path / "a", "-tp", data / "tp2pp2" / "bench", "-gp", one, *LAYOUT)
    summary, got = graph(tmp_path / "b", "-tp", twins["tp2pp2/bench"], "-gp", one, *options)
    partner = {place(r): json.loads(r["matched_node_link"]) for r in want}
    wrong = []
    for row in got:
        link, theirs = json.loads(row["matched_node_link"]), partner[place(row)]
        if re.match(r"(Cell|Module)\.", row["node_name"]) and torch_text(json.dumps(link)) != json.dumps(theirs):
            wrong.append((row["node_name"], link[-1:], theirs[-1:]))
    assert wrong == []
    print(summary)

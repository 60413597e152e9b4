"""Merging ranks: real runs on gloo processes, in parallel layouts, against the same weights on one rank."""

import json
import math
import shutil
import sqlite3

import pytest
from launch import HERE, run_python
from merge_scenario import LAYOUTS
from test_graph_cli import run

PLAIN = ["tp2", "pp2", "pp2vpp2", "tp2pp2", "cp2", "tp2cp2"]
SUMS = 2e-6  # relative to Norm; Mean relative to Norm / sqrt(elements)

LAYOUT = """
layout:
  "*.ColumnParallelLinear.forward*":
    input.0: s b h
    output.0: s b h[tp]
    parameters.weight: o[tp] i
  "*.RowParallelLinear.forward*":
    input.0: s b h[tp]
    output.0: s b h
    parameters.weight: o i[tp]
  "*.RowParallelLinear.forward*/Functional.linear*":
    output.0: s b h partial[tp]
  "*.LayerNorm.forward*":
    "*": replica
"""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    root = tmp_path_factory.mktemp("merge")
    run_python(["-W", "ignore", HERE / "merge_scenario.py", root], cwd=root)
    return root


def options(*names):
    sides = [LAYOUTS[n] for n in names]
    out = ["--rank_size", *(s.ranks for s in sides)]
    for key in ("tp", "pp", "vpp", "cp", "ep"):
        out += [f"--{key}", *(getattr(s, key) for s in sides)]
    return [*out, "--order", *["tp-cp-ep-dp-pp"] * len(sides)]


def compare(root, out, name, single="one", *more, golden=None):
    args = ["-tp", root / name / "step0", "-gp", golden or root / single / "step0", "-o", out, "--json"]
    done = run(["graph_visualize", *args, *options(name, single), *more])
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    db.row_factory = sqlite3.Row
    rows = db.execute("SELECT * FROM tb_nodes ORDER BY data_source, rank, node_order").fetchall()
    db.close()
    return summary, rows


def of_merge(findings):
    return [f for f in findings if f["kind"] in ("replica", "layout", "suspect_rank")]


def modules(rows, source, direction=".forward."):
    """Modules of the model by name; what is not called Module is a call or a collection."""
    return {
        (r["rank"], r["node_name"]): r
        for r in rows
        if r["data_source"] == source and r["node_name"].startswith("Module.") and direction in r["node_name"]
    }


def calls_in(rows):
    """Calls of the target inside of modules that make new values."""
    return [
        r
        for r in rows
        if r["data_source"] == "NPU"
        and r["node_name"].startswith("Functional.")
        and r["node_name"].endswith("forward")
        and r["up_node"].startswith("Module.")
    ]


def unmatched(nodes):
    return [n for (_, n), row in nodes.items() if row["matched_node_link"] == "[]"]


def renamed(root, out, names):
    """The run on one rank with other names of modules: out/one/step0."""
    for source in (root / "one" / "step0" / "rank0").glob("*.json"):
        text = source.read_text()
        for old, new in names.items():
            text = text.replace(old, new)
        target = out / "one" / "step0" / "rank0" / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return out / "one" / "step0"


def number(text):
    return float(text) if text not in ("null", "N/A", None) else math.nan


def assert_same_values(ours, theirs, keys=("input_data", "output_data")):
    """Statistics of merged and single tensors agree up to the order of sums; returns how many were compared."""
    count = 0
    for column in keys:
        left, right = (
            {k.split("ward.", 1)[1].partition(".")[2]: v for k, v in json.loads(r[column]).items()}
            for r in (ours, theirs)
        )
        assert set(left) == set(right), ours["node_name"]
        for name, tensor in left.items():
            golden = right[name]
            if "Norm" not in tensor or "float" not in tensor.get("dtype", ""):
                continue
            norm, where = number(golden["Norm"]), f"{ours['node_name']} {name}"
            elements = math.prod(json.loads(golden["shape"])) or 1
            assert number(tensor["Norm"]) == pytest.approx(norm, rel=SUMS), where
            mean = number(golden["Mean"])
            assert number(tensor["Mean"]) == pytest.approx(mean, abs=SUMS * norm / math.sqrt(elements) + 1e-6), where
            for key in ("Max", "Min"):
                assert number(tensor[key]) == pytest.approx(number(golden[key]), rel=1e-5, abs=2e-6), where
            count += 1
    return count


@pytest.mark.parametrize("name", PLAIN)
def test_every_module_matches_the_run_on_one_rank(dumps, tmp_path, name):
    summary, rows = compare(dumps, tmp_path, name)
    ours, theirs = modules(rows, "NPU"), modules(rows, "Bench")
    assert unmatched(ours) == [] and summary["error"] == 0
    if LAYOUTS[name].vpp > 1:  # Megatron gives chunks a number: Module.0.module...
        ours = {(r, n.replace("Module.0.", "Module.", 1)): row for (r, n), row in ours.items()}
    assert set(ours) == set(theirs)
    assert len(ours) == 4 * 9 + 5
    compared = sum(assert_same_values(ours[key], theirs[key]) for key in theirs)
    assert compared > 100
    assert of_merge(summary["findings"]) == []


def query(summary, sql):
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


VERDICTS = """
SELECT s.name, p.verdict, p.error FROM msprobe_precision p
JOIN msprobe_node n USING (node) JOIN msprobe_name s USING (name_id)
"""


@pytest.mark.parametrize("name", ["tp2", "tp2pp2"])
def test_the_ruler_measures_merged_nodes(dumps, tmp_path, name):
    summary, rows = compare(dumps, tmp_path, name)
    verdicts = query(summary, VERDICTS)
    assert len(verdicts) > 150
    assert {v for _, v, _ in verdicts} <= {"bit-equal", "round-off", "rewritten", "N/A"}, (
        "another layout only rounds otherwise"
    )
    assert summary["first_difference"] is None
    assert [f.name for f in tmp_path.iterdir()] == [summary["file"].rsplit("/", 1)[1]], "nothing else is left"


def test_links_of_merged_ranks(dumps, tmp_path):
    """From stage to stage of the pipeline; all ranks of an all_reduce in a tensor parallel group are one node."""
    summary, rows = compare(dumps, tmp_path, "tp2pp2")
    links = {r["node_name"]: json.loads(r["matched_distributed"]) for r in rows if r["matched_distributed"] != "{}"}
    assert summary["links"] == len(links) == 8
    for call, back, first, second in (("send", "recv", 0, 2), ("recv", "send", 1, 3)):
        own = f"Distributed.{call}{f'_rank{first}' if first else ''}.0.forward"
        other = f"Distributed.{back}_rank{second}.0.forward"
        assert links[own]["nodes_info"] == {"0": ["Nan", other]}
        assert links[other]["nodes_info"] == {"0": ["Nan", own]}
        assert {links[own]["communications_type"], links[other]["communications_type"]} == {"send", "receive"}
    members = query(summary, "SELECT exchange, count(*) FROM msprobe_exchanges GROUP BY exchange ORDER BY 2")
    assert members[0][1] == 1 and members[-1][1] == 2
    assert [f for f in summary["findings"] if f["kind"] in ("no_partner", "missing_call", "call_order")] == []


def test_layers_are_in_the_order_of_the_model(dumps, tmp_path):
    for name in ("pp2", "pp2vpp2"):
        _, rows = compare(dumps, tmp_path / name, name)
        for direction, want in ((".forward.", [0, 1, 2, 3]), (".backward.", [3, 2, 1, 0])):
            (block,) = [
                json.loads(r["sub_nodes"])
                for r in modules(rows, "NPU", direction).values()
                if "TransformerBlock" in r["node_name"]
            ]
            layers = [int(n.split("layers.")[1].split(".")[0]) for n in block if "layers." in n]
            assert layers == want
            assert any("final_layernorm" in n for n in block)


def test_calls_inside_the_layers_are_matched_and_agree(dumps, tmp_path):
    _, rows = compare(dumps, tmp_path, "tp2pp2")
    by_id = {r["node_name"]: r for r in rows if r["data_source"] == "Bench"}
    calls = 0
    for row in calls_in(rows):
        link = json.loads(row["matched_node_link"])
        assert link, row["node_name"]
        calls += assert_same_values(row, by_id[link[-1]], ["output_data"])
    assert calls == 4 * 7 + 3  # linear x4, layer_norm x2, gelu in each layer; embedding, last norm, head
    merged = [r for r in rows if "is merged from Distributed.all_reduce" in r["parallel_merge_info"]]
    assert len(merged) >= 8


def test_experts_of_all_ranks(dumps, tmp_path):
    _, rows = compare(dumps, tmp_path, "ep2", "one_moe")
    ours, theirs = modules(rows, "NPU"), modules(rows, "Bench")
    assert set(ours) == set(theirs) and unmatched(ours) == []
    experts = [n for _, n in ours if "local_experts." in n]
    assert {int(n.split("local_experts.")[1].split(".")[0]) for n in experts} <= {0, 1, 2, 3}
    assert len(experts) > 8
    checked = 0
    for key in theirs:
        if "Experts." not in key[1]:  # its tokens are in another order
            checked += assert_same_values(ours[key], theirs[key], ["output_data"])
    assert checked > 30


# As the template qwen2.5:mindspeed-llamafactory has it.
LLAMAFACTORY = {
    "Module.module.decoder.layers.": "Module.module.layers.",
    "Module.module.decoder.final_layernorm.": "Module.module.norm.",
    ".self_attention.": ".self_attn.",
    ".pre_mlp_layernorm.": ".post_attention_layernorm.",
    ".linear_proj.": ".o_proj.",
    ".linear_fc1.": ".up_proj.",
    ".linear_fc2.": ".down_proj.",
}


@pytest.mark.parametrize(
    "name,names,mapping",
    [
        ("tp2pp2", {".linear_fc1.": ".up."}, ["-lm"]),
        ("pp2vpp2", LLAMAFACTORY, ["--template", "qwen2.5:mindspeed-llamafactory"]),
    ],
)
def test_a_layer_mapping_works_on_merged_ranks(dumps, tmp_path, name, names, mapping):
    golden = renamed(dumps, tmp_path, names)
    if mapping == ["-lm"]:
        (tmp_path / "map.yaml").write_text("MLP:\n  linear_fc1: up\n")
        mapping = ["-lm", tmp_path / "map.yaml"]
    summary, rows = compare(dumps, tmp_path / "out", name, "one", *mapping, golden=golden)
    ours = {**modules(rows, "NPU"), **modules(rows, "NPU", ".backward.")}
    assert unmatched(ours) == [] and summary["error"] == 0
    link = {n.split("module.", 1)[1]: json.loads(row["matched_node_link"])[-1] for (_, n), row in ours.items()}
    new = names[".linear_fc1."]
    assert f"layers.3.mlp{new}" in link["decoder.layers.3.mlp.linear_fc1.ColumnParallelLinear.forward.0"]
    by_name = {r["node_name"]: r for r in rows if r["data_source"] == "Bench"}
    assert all(assert_same_values(row, by_name[json.loads(row["matched_node_link"])[-1]]) for row in calls_in(rows))
    _, rows = compare(dumps, tmp_path / "without", name, "one", golden=golden)
    assert len(unmatched(modules(rows, "NPU"))) >= 4  # what the mapping is needed for


def test_data_parallel_ranks_stay_apart(dumps, tmp_path):
    summary, rows = compare(dumps, tmp_path, "tp2dp2", "dp2")
    assert summary["graphs"] == 2
    ours, theirs = modules(rows, "NPU"), modules(rows, "Bench")
    assert {rank for rank, _ in ours} == {0, 2} and unmatched(ours) == []
    golden_rank = {0: 0, 2: 1}
    by_name = {}
    for (rank, name), row in ours.items():
        by_name.setdefault(rank, {})[name] = row
    # Graphs are paired by position; the golden one is written under the rank of the target.
    for (rank, name), row in theirs.items():
        assert rank in golden_rank
        assert_same_values(by_name[rank][name], row)


def test_a_bug_in_one_shard_is_found_with_its_layer_and_rank(dumps, tmp_path):
    summary, rows = compare(dumps, tmp_path, "tp2_shard_bug")
    assert "layers.1.mlp.linear_fc1" in summary["first_error"]["node"]
    assert summary["suspect_ranks"] == [1]
    first = summary["first_difference"]
    assert (first["kind"], first["verdict"], first["node"]) == ("op", "bug", summary["first_error"]["node"])
    (finding,) = [f for f in of_merge(summary["findings"]) if f["node"] == summary["first_error"]["node"]]
    assert finding["kind"] == "suspect_rank" and finding["ranks"] == [1]
    (row,) = [r for r in rows if r["data_source"] == "NPU" and r["node_name"] == summary["first_error"]["node"]]
    assert "suspect: the part of rank 1" in row["parallel_merge_info"]


def test_a_replica_that_differs_is_a_finding_with_its_rank(dumps, tmp_path):
    layout = tmp_path / "layout.yaml"
    layout.write_text(LAYOUT)
    clean, bad = dumps / "tp2" / "step0", dumps / "tp4_replica_bug" / "step0"
    plan = run(["graph_visualize", "-tp", clean, "-o", tmp_path, *options("tp2"), "--layout", layout, "--plan"])
    answer = json.loads(plan.stdout)
    assert answer["graphs"][0]["findings"] == []
    assert answer["layout"]["rules"][0]["tp"] == "replica"
    done = run(
        ["graph_visualize", "-tp", bad, "-o", tmp_path, *options("tp4_replica_bug"), "--layout", layout, "--json"]
    )
    finding = of_merge(json.loads(done.stdout)["findings"])[0]
    assert finding["kind"] == "replica" and finding["ranks"] == [1]
    assert "layers.1.pre_mlp_layernorm" in finding["node"]
    assert "output.0 should be the same" in finding["text"]


def test_a_layout_gives_merged_shapes_and_says_what_is_lost(dumps, tmp_path):
    layout = tmp_path / "layout.yaml"
    layout.write_text(LAYOUT)
    out = tmp_path / "out"
    args = ["-tp", dumps / "tp2" / "step0", "-o", out, *options("tp2"), "--layout", layout, "--file_type", "json"]
    assert run(["graph_visualize", *args]).returncode == 0
    data = json.loads((out / "step0" / "rank0" / "dump.json").read_text())["data"]
    one = json.loads((dumps / "one" / "step0" / "rank0" / "dump.json").read_text())["data"]
    name = "Module.module.decoder.layers.1.mlp.linear_fc1.ColumnParallelLinear.forward.0"
    assert data[name]["output"][0]["shape"] == one[name]["output"][0]["shape"]
    weight = data[name]["parameters"]["weight"]
    assert weight["shape"] == one[name]["parameters"]["weight"]["shape"]
    assert weight["Norm"] == pytest.approx(one[name]["parameters"]["weight"]["Norm"], rel=SUMS)
    # A partial product shows the sum that the reduction made of it.
    product = data["Functional.linear.3.forward"]
    assert "is merged from Distributed.all_reduce" in str(product["parallel_merge_info"])
    assert product["output"][0]["Norm"] == pytest.approx(
        one["Functional.linear.3.forward"]["output"][0]["Norm"], rel=SUMS
    )
    # Without a reduction there is nothing to show.
    layout.write_text("layout: {'*.gelu.*': {output.0: 's b h partial[tp]'}}")
    args[args.index("-o") + 1] = tmp_path / "partial"
    assert run(["graph_visualize", *args]).returncode == 0
    data = json.loads((tmp_path / "partial" / "step0" / "rank0" / "dump.json").read_text())["data"]
    assert data["Functional.gelu.0.forward"]["output"][0]["Norm"] is None
    assert "cannot be merged" in str(data["Functional.gelu.0.forward"]["parallel_merge_info"])


def test_the_plan_names_groups_and_moves(dumps, tmp_path):
    done = run(["graph_visualize", "-tp", dumps / "tp2pp2" / "step0", "-o", tmp_path, *options("tp2pp2"), "--plan"])
    plan = json.loads(done.stdout)
    (side,) = plan["sides"]
    assert side["tp_groups"] == [[0, 1], [2, 3]] and side["tp_groups_from"] == "data"
    assert side["pp_groups"] == [[0, 2], [1, 3]]
    assert side["graphs"] == [{"stages": [[0, 1], [2, 3]]}]
    moved = {m["to"]: m for m in plan["graphs"][0]["moved"]}
    layer = moved["Module.module.decoder.layers.2.TransformerLayer.forward.0"]
    assert layer["rank"] == 2 and "layers.0." in layer["from"]
    assert "Module.module.output_layer.OutputLayer.forward.0" in moved
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text,word",
    [
        ("layout: {a: {output.0: 's b h[xx]'}}", 'line 1, key "output.0"'),
        ("default: maybe\nlayout: {}", 'line 1, key "default"'),
        ("layouts: {}", 'key "layouts"'),
        ("layout:\n  a:\n    output.0: s b[tp] h[tp]", 'line 3, key "output.0"'),
        ("layout: [", "line 1"),
    ],
)
def test_a_bad_layout_is_refused_with_line_and_key(dumps, tmp_path, text, word):
    layout = tmp_path / "layout.yaml"
    layout.write_text(text)
    args = ["-tp", dumps / "tp2" / "step0", "-o", tmp_path / "out", *options("tp2"), "--layout", layout]
    done = run(["graph_visualize", *args], check=False)
    assert done.returncode == 3 and word in done.stderr, done.stderr


@pytest.mark.parametrize(
    "more,code,word",
    [
        (["--rank_size", "4", "--tp", "2", "--pp", "1"], 3, "holds 2 ranks"),
        (["--rank_size", "2", "--tp", "3", "--pp", "1"], 2, "not a multiple"),
        (["--rank_size", "2", "--tp", "2"], 2, "--pp"),
        (["--rank_size", "2", "--tp", "1", "--pp", "1", "--vpp", "2"], 2, "--vpp"),
        (["--rank_size", "2", "--tp", "2", "--pp", "1", "--order", "tp-zz"], 2, "zz"),
        (["--rank_size", "2", "--tp", "2", "--pp", "2"], 2, "--rank_size"),
        (["--cp", "2"], 2, "--rank_size"),
    ],
)
def test_sizes_that_cannot_be_are_refused(dumps, tmp_path, more, code, word):
    done = run(["graph_visualize", "-tp", dumps / "tp2" / "step0", "-o", tmp_path / "out", *more], check=False)
    assert done.returncode == code and word in done.stderr, done.stderr


def test_sizes_without_a_rank_size_do_nothing(dumps, tmp_path):
    done = run(["graph_visualize", "-tp", dumps / "tp2" / "step0", "-o", tmp_path / "out", "--tp", "2", "--json"])
    assert "--tp, --pp, --vpp and --order" in done.stderr
    assert json.loads(done.stdout)["graphs"] == 2


def test_a_cut_rank_leaves_the_other_graphs_and_a_code_as_files_too(dumps, tmp_path):
    """Ranks 1 and 2 of four in two groups: one is cut, the other holds nothing."""
    step = tmp_path / "step0"
    shutil.copytree(dumps / "tp2dp2" / "step0", step)
    cut = step / "rank1" / "dump.json"
    cut.write_bytes(cut.read_bytes()[:-2000])
    args = ["graph_visualize", "-tp", step, *options("tp2dp2"), "--file_type", "json", "--json"]
    done = run([*args, "-o", tmp_path / "cut"], check=False)
    assert done.returncode == 3 and "is written, but" in done.stderr
    summary = json.loads(done.stdout)
    assert summary["graphs"] == 2 and "rank1" in summary["damaged"][0]["why"]
    (step / "rank2" / "construct.json").write_text("{}")
    done = run([*args, "-o", tmp_path / "left"], check=False)
    assert done.returncode == 3 and "left out" in done.stderr and "is written, but" in done.stderr
    summary = json.loads(done.stdout)
    assert summary["graphs"] == 1 and [d["left_out"] for d in summary["damaged"]] == [False, True]
    assert len(list((tmp_path / "left" / "step0").iterdir())) == 1


def test_missing_and_damaged_ranks_are_named(dumps, tmp_path):
    step = tmp_path / "step0"
    shutil.copytree(dumps / "tp2pp2" / "step0", step)
    args = ["graph_visualize", "-tp", step, "-o", tmp_path / "out", *options("tp2pp2")]
    dump = step / "rank3" / "dump.json"
    dump.write_bytes(dump.read_bytes()[:-2000])
    done = run([*args, "--json"], check=False)
    assert done.returncode == 3 and len(list((tmp_path / "out").iterdir())) == 1
    assert "rank3" in done.stderr and "ends" in done.stderr and "is written, but" in done.stderr
    assert "rank3" in json.loads(done.stdout)["damaged"][0]["why"]
    shutil.rmtree(step / "rank1")
    done = run(args, check=False)
    assert done.returncode == 3 and "holds 3 ranks" in done.stderr
    (step / "rank7").mkdir()
    shutil.copy(step / "rank0" / "dump.json", step / "rank7")
    done = run(args, check=False)
    assert done.returncode == 3 and "lacks rank1" in done.stderr

"""Options of `msprobe graph_visualize` beyond plain graphs: mappings, templates, tensor dumps, our own tables, damaged ranks."""

import json
import sqlite3
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, only_db, read_db, run, write_rank

TEMPLATES = {
    f"{model}:{pair}"
    for model in ("qwen2.5", "qwen2.5-vl")
    for pair in ("mindspeed-llamafactory", "llamafactory-mindspeed")
}


def op(norm=1.0, **more):
    return {"input_args": [TENSOR], "input_kwargs": {}, "output": [{**TENSOR, "Norm": norm}], **more}


def make_rank(path, layer="fc", norm=1.0, calls=2, first=0):
    module = f"Module.model.{layer}.Linear.forward.0"
    names = [f"Torch.add.{first + i}.forward" for i in range(calls)]
    construct = {**dict.fromkeys(names, module), module: "Module.model.Model.forward.0"}
    construct["Module.model.Model.forward.0"] = None
    return write_rank(path, construct, {n: op(norm) for n in construct})


def graph(*args, code=0, **more):
    done = run(["graph_visualize", *args], check=False, **more)
    assert done.returncode == code, done.stderr
    return done


def query(path, sql):
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def links(out):
    rows = read_db(only_db(out))["tb_nodes"].values()
    return {
        r["node_name"]: (json.loads(r["matched_node_link"]) or [None])[-1] for r in rows if r["data_source"] == "NPU"
    }


@pytest.mark.parametrize("command", ["graph_visualize", "compare"])
def test_templates_are_listed_and_printed(command, tmp_path):
    assert set(run([command, "--template", "list"]).stdout.split()) == TEMPLATES
    assert set(json.loads(run([command, "--template", "list", "--json"]).stdout)) == TEMPLATES
    text = run([command, "--print_template", "qwen2.5:mindspeed-llamafactory"]).stdout
    assert "\nGPTModel:\n" in text and "  decoder.layers: layers\n" in text
    assert run([command, "--print_template", "x"], check=False).returncode == 2


def test_a_template_matches_two_frameworks_in_graph_and_table(tmp_path):
    sides = (
        ("a", "Module.0.module.module.decoder.layers.1.mlp.linear_fc2.Linear", ["GPTModel", "TransformerLayer", "MLP"]),
        ("b", "Module.module.model.layers.1.mlp.down_proj.Linear", ["Qwen2Model", "Qwen2DecoderLayer", "Qwen2MLP"]),
    )
    for side, leaf, classes in sides:
        head = "Module.0.module.module" if side == "a" else "Module.module.model"
        layers = f"{head}.decoder.layers.1" if side == "a" else f"{head}.layers.1"
        top = "Module.0.module.Float16Module" if side == "a" else "Module.module.Qwen2ForCausalLM"
        names = [f"{top}.forward.0", f"{head}.{classes[0]}.forward.0", f"{layers}.{classes[1]}.forward.0"]
        names += [f"{layers}.mlp.{classes[2]}.forward.0", f"{leaf}.forward.0"]
        construct = {name: up for name, up in zip(reversed(names), [*reversed(names[:-1]), None])}
        write_rank(tmp_path / side, construct, {n: op() for n in construct})
    args = ["-tp", tmp_path / "a", "-gp", tmp_path / "b", "--template", "qwen2.5:mindspeed-llamafactory"]
    graph(*args, "-o", tmp_path / "out")
    found = links(tmp_path / "out")
    assert len(found) == 6 and None not in found.values()
    assert found[f"{sides[0][1]}.forward.0"] == f"{sides[1][1]}.forward.0"
    table = json.loads(run(["compare", *args, "-o", tmp_path / "table", "--json"]).stdout)
    assert table["pairs"][0]["matched_ops"] == 5


def test_a_mapping_with_fuzzy_match_pairs_calls_by_order(tmp_path):
    make_rank(tmp_path / "a", layer="fc", first=4)
    make_rank(tmp_path / "b", layer="dense")
    mapping = tmp_path / "map.yaml"
    mapping.write_text("Model:\n  fc: dense\n")
    graph("-tp", tmp_path / "a", "-gp", tmp_path / "b", "-lm", mapping, "-fm", "-o", tmp_path / "out")
    found = links(tmp_path / "out")
    assert found["Module.model.fc.Linear.forward.0"] == "Module.model.dense.Linear.forward.0"
    assert found["Torch.add.4.forward"] == "Torch.add.0.forward"


@pytest.mark.parametrize(
    "text,words",
    [
        ("TopLayer: {}\nMLP:\n  a: [b, c]\n", ["map.yaml, line 3", '"a"']),
        ("TopLayer:\n  a: b\n c: d\n", ["map.yaml", "line 3"]),
        ("- a\n", ["map.yaml, line 1"]),
        ("TopLayer:\n  a:\n", ["map.yaml, line 2", '"a"']),
    ],
)
def test_a_bad_mapping_names_line_and_key(tmp_path, text, words):
    make_rank(tmp_path / "a")
    (tmp_path / "map.yaml").write_text(text)
    args = ["-tp", tmp_path / "a", "-gp", tmp_path / "a", "-o", tmp_path / "out"]
    error = graph(*args, "-lm", tmp_path / "map.yaml", code=3).stderr
    assert len(error.strip().splitlines()) == 1 and all(word in error for word in words), error
    assert not list((tmp_path).glob("out/*"))


def test_a_step_is_recorded_under_its_number(tmp_path):
    """The old tool records step 0 for a path to a step."""
    make_rank(tmp_path / "step7" / "rank3")
    graph("-tp", tmp_path / "step7", "-o", tmp_path / "out")
    tables = read_db(only_db(tmp_path / "out"))
    assert {(r["step"], r["rank"]) for r in tables["tb_nodes"].values()} == {(7, 3)}
    assert tables["tb_config"]["1"]["step_list"] == "[7]"


def test_a_damaged_rank_does_not_stop_the_others(tmp_path):
    for rank in range(3):
        make_rank(tmp_path / "step0" / f"rank{rank}", calls=40)
    text = (tmp_path / "step0" / "rank1" / "dump.json").read_text()
    (tmp_path / "step0" / "rank1" / "dump.json").write_text(text[: len(text) // 2])
    (tmp_path / "step0" / "rank2" / "construct.json").write_text("{}")
    done = graph("-tp", tmp_path / "step0", "-o", tmp_path / "out", "--json", code=3)
    assert "rank 1" in done.stderr.splitlines()[-1]
    damaged = {d["rank"]: d for d in json.loads(done.stdout)["damaged"]}
    assert damaged[1]["left_out"] is False and "probably killed" in damaged[1]["why"]
    assert damaged[2]["left_out"] is True and "L0 or mix" in damaged[2]["why"]
    rows = read_db(only_db(tmp_path / "out"))["tb_nodes"].values()
    assert {r["rank"] for r in rows} == {0, 1}


def test_our_tables_stand_beside_the_old_ones(tmp_path):
    a, b = make_rank(tmp_path / "a", norm=1.5), make_rank(tmp_path / "b")
    done = graph("-tp", a, "-gp", b, "-o", tmp_path / "out", "--json")
    first = json.loads(done.stdout)["first_difference"]
    assert (first["node"], first["kind"]) == ("Torch.add.0.forward", "op")
    file = only_db(tmp_path / "out")
    meta = dict(query(file, "SELECT * FROM msprobe_meta"))
    assert meta.pop("tool").startswith("msprobe ")
    assert meta == {"format": "1", "target": str(a), "golden": str(b)}
    rows = query(
        file,
        "SELECT s.name, p.verdict, p.error, p.input_error, p.units, p.cosine FROM msprobe_precision p"
        " JOIN msprobe_node n USING (node) JOIN msprobe_name s USING (name_id) ORDER BY node",
    )
    assert [r[0] for r in rows][0] == "Torch.add.0.forward" and len(rows) == 4
    assert rows[0][1] == "bug" and rows[0][2] == pytest.approx(0.5, rel=1e-6)
    assert rows[0][3] == 0 and rows[0][4] > 1000 and rows[0][5] is None
    graph("-tp", a, "-gp", b, "-o", tmp_path / "plain", "--plain")
    names = {name for (name,) in query(only_db(tmp_path / "plain"), "SELECT name FROM sqlite_master")}
    assert {"tb_nodes", "index7"} <= names and not any(name.startswith("msprobe") for name in names)


def test_paths_with_spaces_and_other_scripts(tmp_path):
    rank = make_rank(tmp_path / "训练 a" / "step0" / "rank0")
    out = tmp_path / "结果 out"
    graph("-tp", rank, "-gp", rank, "-o", out)
    assert only_db(out).name.startswith("compare_")


def test_graphs_of_tensor_dumps(tmp_path):
    torch = pytest.importorskip("torch")
    name = "Torch.add.0.forward"
    for side, scale in (("a", 1.001), ("b", 1.0)):
        values = {"input.0": torch.arange(6.0), "output.0": torch.arange(6.0) * scale}
        folder = tmp_path / side / "dump_tensor_data"
        folder.mkdir(parents=True)
        item = {}
        for key, value in values.items():
            torch.save(value, folder / f"{name}.{key}.pt")
            item[key] = {**TENSOR, "shape": [6], "data_name": f"{name}.{key}.pt"}
        missing = {**TENSOR, "shape": [6], "data_name": f"{name}.output.1.pt"}
        data = {name: {"input_args": [item["input.0"]], "input_kwargs": {}, "output": [item["output.0"], missing]}}
        write_rank(tmp_path / side, {name: None}, data, task="tensor", data_dir=str(folder))
    args = ["-tp", tmp_path / "a", "-gp", tmp_path / "b", "-tensor_log", "-progress_log"]
    done = graph(*args, "-o", tmp_path / "out", code=3)
    assert "1 row had no tensor: its file is missing" in done.stdout
    assert f"[{name}.input.0] Compare result: Cosine 1.0, EucDist 0.0" in done.stdout
    progress = [json.loads(line[10:]) for line in done.stdout.splitlines() if line.startswith("PROGRESS: ")]
    assert progress[0]["current_progress"] == 0 and progress[-1]["current_progress"] == 100
    file = only_db(tmp_path / "out")
    (row,) = [r for r in read_db(file)["tb_nodes"].values() if r["id"] == f"NPU_0_0_{name}"]
    output = json.loads(row["output_data"])
    assert float(output[f"{name}.output.0"]["MaxAbsErr"]) == pytest.approx(0.005, rel=1e-3)
    lost = output[f"{name}.output.1"]  # the old tool lets it pass without a word
    assert lost["Result"] == "warning" and "not found" in lost["Err_message"]
    ((cosine, max_abs, error),) = query(file, "SELECT cosine, max_abs_err, error FROM msprobe_precision")
    assert cosine == pytest.approx(1) and max_abs == pytest.approx(0.005, rel=1e-3)
    assert error == pytest.approx(0.005, rel=1e-3), "against the largest value that dump.json names"

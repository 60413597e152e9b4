"""Models compared as structures: what one side lacks, what moved, what has another name, and the mapping made from it."""

import csv
import json
import sys
from pathlib import Path

import openpyxl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, golden_set, run


class Model:
    """construct.json of a step, and the same ops as a dump of statistics."""

    def __init__(self):
        self.construct, self.data, self.calls = {}, {}, {}

    def function(self, name, parent):
        number = self.calls[name] = self.calls.get(name, -1) + 1
        self.add(f"{name}.{number}.forward", parent)

    def module(self, path, kind, parent, *functions, weight=None):
        name = f"Module.{path}.{kind}.forward.0"
        for function in functions:
            self.function(function, name)
        self.add(name, parent, {"weight": {**TENSOR, "shape": weight}} if weight else None)
        return name

    def add(self, name, parent, parameters=None):
        self.construct[name] = parent
        op = {"input_args": [TENSOR], "input_kwargs": {}, "output": [TENSOR]}
        self.data[name] = {**op, "parameters": parameters} if parameters else op

    def write(self, folder, task="structure"):
        folder.mkdir(parents=True)
        data = {} if task == "structure" else self.data
        envelope = {"task": task, "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": data}
        (folder / "dump.json").write_text(json.dumps(envelope, indent=1))
        (folder / "construct.json").write_text(json.dumps(self.construct, indent=1))
        return folder / "dump.json"


def transformer(top="model", stack="layers", first="fc1", second="fc2", layers=2, norm_inside=False, extra=False):
    model = Model()
    root = f"Module.{top}.Net.forward.0"
    for i in range(layers):
        block = f"Module.{top}.{stack}.{i}.Block.forward.0"
        if extra:
            model.module(f"{top}.{stack}.{i}.drop", "Dropout", block, "Functional.dropout")
        inside = f"{top}.{stack}.{i}" + (".mlp" if norm_inside else "")
        around = f"Module.{top}.{stack}.{i}.mlp.MLP.forward.0"
        model.module(
            f"{inside}.norm", "LayerNorm", around if norm_inside else block, "Functional.layer_norm", weight=[8]
        )
        model.module(f"{top}.{stack}.{i}.mlp.{first}", "Linear", around, "Functional.linear", weight=[16, 8])
        model.function("Functional.relu", around)
        model.module(f"{top}.{stack}.{i}.mlp.{second}", "Linear", around, "Functional.linear", weight=[8, 16])
        model.add(around, block)
        model.add(block, root)
    model.add(root, None)
    return model


def compare(target, golden, out, *options, check=True):
    return run(["compare", "-tp", target, "-gp", golden, "-o", out, "--json", *options], check=check)


def read(out):
    (path,) = (p for p in Path(out).glob("compare_result*.csv"))
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def listed(out):
    (path,) = Path(out).glob("compare_result*_structure.json")
    return json.loads(path.read_text())


def test_equal_models(tmp_path):
    a, b = transformer().write(tmp_path / "a"), transformer().write(tmp_path / "b")
    report = json.loads(compare(a, b, tmp_path / "out").stdout)
    (pair,) = report["pairs"]
    rows = read(tmp_path / "out")
    assert pair["mode"] == "structure" and pair["rows"] == pair["pass"] == len(rows) == len(transformer().construct)
    assert [row["NPU Name"] for row in rows] == list(transformer().construct)
    assert {row["Difference"] for row in rows} == {"same"} and {row["Result"] for row in rows} == {"pass"}
    assert {row["NPU Dtype"] for row in rows} == {"N/A"}
    assert set(map(len, (v for k, v in listed(tmp_path / "out").items() if k != "matched"))) == {0}


def test_one_side_only(tmp_path):
    a = transformer(extra=True).write(tmp_path / "a")
    b = transformer(layers=3).write(tmp_path / "b")
    compare(a, b, tmp_path / "out")
    changes = listed(tmp_path / "out")
    assert [c["target"] for c in changes["target_only"]] == ["model.layers.0.drop", "model.layers.1.drop"]
    assert [(c["golden"], c["calls"]) for c in changes["golden_only"]] == [("model.layers.2", 9)]
    assert not any(changes[kind] for kind in ("renamed", "moved", "class", "calls"))
    rows = read(tmp_path / "out")
    lone = [row for row in rows if row["Bench Name"] == "N/A"]
    assert [row["NPU Type"] for row in lone] == ["Functional.dropout", "Dropout"] * 2
    assert {(row["Difference"], row["Result"]) for row in lone} == {("target only", "error")}
    # What the golden run has more stands where it runs there.
    names = [row["Bench Name"] for row in rows if row["Bench Name"] != "N/A"]
    assert names == list(transformer(layers=3).construct)


def test_names_are_found_and_suggested(tmp_path):
    target, golden = transformer(stack="blocks", first="up", second="down"), transformer()
    a, b = target.write(tmp_path / "a"), golden.write(tmp_path / "b")
    mapping = tmp_path / "mapping.yaml"
    report = json.loads(compare(a, b, tmp_path / "out", "--suggest_mapping", mapping).stdout)
    changes = listed(tmp_path / "out")
    renamed = {(c["target"], c["golden"]) for c in changes["renamed"]}
    assert ("model.blocks", "model.layers") in renamed
    assert ("model.blocks.1.mlp.down", "model.layers.1.mlp.fc2") in renamed
    assert report["pairs"][0]["matched_ops"] == len(golden.construct) and report["suggested_mapping"] == str(mapping)
    lines = [line for line in mapping.read_text().splitlines() if not line.startswith("#")]
    assert lines == ["Net:", "  blocks: layers", "MLP:", "  down: fc2", "  up: fc1"]
    # It is what -lm reads: the values of the two runs then stand against each other.
    a, b = target.write(tmp_path / "c", "statistics"), golden.write(tmp_path / "d", "statistics")
    counts = [
        json.loads(compare(a, b, tmp_path / str(i), *options).stdout)["pairs"][0]["matched_ops"]
        for i, options in enumerate([["-lm"], ["-lm", mapping]])
    ]
    assert counts[0] < counts[1] == len(golden.construct)


def test_moved_modules(tmp_path):
    a = transformer(norm_inside=True).write(tmp_path / "a")
    b = transformer().write(tmp_path / "b")
    mapping = tmp_path / "mapping.yaml"
    compare(a, b, tmp_path / "out", "--suggest-mapping", mapping)
    changes = listed(tmp_path / "out")
    moved = [(c["target"], c["golden"]) for c in changes["moved"]]
    assert moved == [(f"model.layers.{i}.mlp.norm", f"model.layers.{i}.norm") for i in (0, 1)]
    assert not changes["target_only"] and not changes["golden_only"]
    assert "Block:\n  mlp.norm: norm\n" in mapping.read_text()
    rows = {row["NPU Name"]: row for row in read(tmp_path / "out")}
    row = rows["Module.model.layers.1.mlp.norm.LayerNorm.forward.0"]
    assert (row["Bench Name"], row["Result"]) == ("Module.model.layers.1.norm.LayerNorm.forward.0", "warning")


def test_a_module_around_the_model(tmp_path):
    a = transformer(top="module.model").write(tmp_path / "a")
    b = transformer().write(tmp_path / "b")
    mapping = tmp_path / "mapping.yaml"
    report = json.loads(compare(a, b, tmp_path / "out", "--suggest_mapping", mapping).stdout)
    assert report["pairs"][0]["target_only_ops"] == 0
    assert "TopLayer:\n  module.model: model\n" in mapping.read_text()


def test_shapes_and_dtypes_of_dumps_with_values(tmp_path):
    target, golden = transformer(), transformer()
    name = "Module.model.layers.0.norm.LayerNorm.forward.0"
    target.data[name] = json.loads(json.dumps(target.data[name]))
    target.data[name]["parameters"]["weight"]["shape"] = [4]
    target.data[name]["output"][0] = {**TENSOR, "dtype": "torch.bfloat16"}
    a, b = target.write(tmp_path / "a", "statistics"), golden.write(tmp_path / "b", "statistics")
    for options in (["--structure"], ["--structure", "--xlsx"]):
        report = json.loads(compare(a, b, tmp_path / "-".join(options), *options).stdout)["pairs"][0]
        assert (report["mode"], report["error"]) == ("structure", 2)
    wrong = {row["NPU Name"]: row["Err_message"] for row in read(tmp_path / "--structure") if row["Result"] == "error"}
    assert wrong == {
        f"{name}.parameters.weight": '["error: the shape differs."]',
        f"{name}.output.0": '["error: the dtype differs."]',
    }
    (book,) = (tmp_path / "--structure---xlsx").glob("*.xlsx")
    sheet = openpyxl.load_workbook(book).active
    assert sheet.max_row == report["rows"] + 1
    assert [c.value for c in sheet[1]][:2] == ["NPU Name", "Bench Name"]


@pytest.mark.parametrize("option", ["--html", "--ruler", "-cm", "--unmatched"])
def test_options_about_values_are_refused(tmp_path, option):
    a = transformer().write(tmp_path / "a")
    done = compare(a, a, tmp_path / "out", option, check=False)
    assert done.returncode == 2 and "remove" in done.stderr


def test_structures_that_cannot_be_read(tmp_path):
    a = transformer().write(tmp_path / "a")
    model = Model()
    b = model.write(tmp_path / "b")
    done = compare(a, b, tmp_path / "out", check=False)
    assert done.returncode == 3 and "construct.json" in done.stderr
    model.add("Module." + "a." * 1000 + "Linear.forward.0", None)
    b = model.write(tmp_path / "c")
    done = compare(a, b, tmp_path / "out", check=False)
    assert done.returncode == 3 and "deep" in done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_parents_that_contain_each_other(tmp_path):
    model = transformer()
    model.construct["Functional.a.0.forward"] = "Functional.b.0.forward"
    model.construct["Functional.b.0.forward"] = "Functional.a.0.forward"
    a = model.write(tmp_path / "a")
    report = json.loads(compare(a, a, tmp_path / "out").stdout)["pairs"][0]
    assert report["matched_ops"] == len(model.construct) and report["pass"] == report["rows"]


def test_threads_do_not_show(tmp_path):
    a = transformer(layers=40, stack="blocks", extra=True).write(tmp_path / "a")
    b = transformer(layers=41).write(tmp_path / "b")
    texts = []
    for threads in ("1", "5"):
        out = tmp_path / threads
        run(
            ["compare", "-tp", a, "-gp", b, "-o", out, "--suggest_mapping", out / "m.yaml"],
            env={"MSPROBE_THREADS": threads},
        )
        texts.append([p.read_bytes() for p in sorted(out.iterdir())])
    assert texts[0] == texts[1] and len(texts[0]) == 3


def test_the_old_tools_dumps(tmp_path):
    data = golden_set() / "data"
    # Renamed layers: the suggestion does what the mapping written by hand does.
    target = data / "m1_ren_stat/weight/step0/rank0/dump.json"
    golden = data / "m1_mix_stat/bench/step0/rank0/dump.json"
    mapping = tmp_path / "mapping.yaml"
    compare(target, golden, tmp_path / "a", "--suggest_mapping", mapping, "-lm")
    by_hand, suggested = (
        json.loads(compare(target, golden, tmp_path / str(i), "-lm", path).stdout)["pairs"][0]["matched_ops"]
        for i, path in enumerate([data / "maps/layer_mapping.yaml", mapping])
    )
    assert suggested == by_hand


def test_all_unmatched_ops_in_a_table(tmp_path):
    a = transformer(extra=True, layers=3).write(tmp_path / "a", "statistics")
    b = transformer(layers=4).write(tmp_path / "b", "statistics")
    report = json.loads(compare(a, b, tmp_path / "out", "--unmatched").stdout)["pairs"][0]
    (path,) = report["unmatched_files"]
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sides = [row["Side"] for row in rows]
    assert sides == ["NPU"] * report["target_only_ops"] + ["Bench"] * report["golden_only_ops"]
    assert [row["Name"] for row in rows][:5] == report["target_only"] and len(rows) > 10
    assert rows[0]["Module"] == "Module.model.layers.0.drop.Dropout.forward.0"
    report = json.loads(compare(a, b, tmp_path / "book", "--unmatched", "--xlsx").stdout)["pairs"][0]
    book = openpyxl.load_workbook(report["unmatched_files"][0])
    assert book.active.max_row == len(rows) + 1

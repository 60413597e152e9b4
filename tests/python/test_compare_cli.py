"""`msprobe compare` as users meet it: options, bad input, full disks, Ctrl-C."""

import base64
import csv
import gzip
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import openpyxl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, find_command, run

HASHED = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": "0a0b0c0d"}


def op(item=TENSOR, **output):
    return {"input_args": [item], "input_kwargs": {}, "output": [{**item, **output}]}


def write_dump(path, data=None, task="statistics", level="L1", framework="pytorch"):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"Functional.f.0.forward": op()} if data is None else data
    envelope = {"task": task, "level": level, "framework": framework, "dump_data_dir": None, "data": data}
    path.write_text(json.dumps(envelope, indent=1), encoding="utf-8")
    return path


def large_dump(path, ops):
    return write_dump(path, {f"Functional.f.{i}.forward": op() for i in range(ops)})


def compare(target, golden, out, *options, **more):
    return run(["compare", "-tp", target, "-gp", golden, "-o", out, *options], check=False, **more)


def files_in(directory):
    return sorted(p.name for p in Path(directory).rglob("*")) if Path(directory).exists() else []


def tables_in(directory):
    return [name for name in files_in(directory) if name != "first_divergence.json"]


def read_csv(out):
    (path,) = Path(out).glob("*.csv")
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def assert_refused(done, out, code, *words):
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("[msprobe] error: "), done.stderr
    for word in words:
        assert word in lines[0]
    assert files_in(out) == []


@pytest.fixture
def pair(tmp_path):
    target = write_dump(tmp_path / "a" / "dump.json", {"Functional.f.0.forward": op(Norm=1.5)})
    return target, write_dump(tmp_path / "b" / "dump.json")


def test_table_summary_and_permissions(pair, tmp_path):
    out = tmp_path / "out" / "deep"
    done = compare(*pair, out)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("compare_result_20*.csv")
    assert str(path) in done.stdout
    assert "first difference: Functional.f.0.forward: output.0 Norm differs by 50 %, inputs are equal" in done.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
    assert [row["Result"] for row in read_csv(out)] == ["pass", "warning"]
    assert done.stderr == ""


def test_json_summary(pair, tmp_path):
    done = compare(*pair, tmp_path / "out", "--json")
    report = json.loads(done.stdout)["pairs"][0]
    assert (report["rows"], report["pass"], report["warning"], report["error"]) == (2, 1, 1, 0)
    assert report["first_difference"]["detail"] == "Norm differs by 50 %"
    assert report["files"] == [str(p) for p in (tmp_path / "out").glob("*.csv")]


def test_plan_is_printed_and_nothing_written(pair, tmp_path):
    plan = json.loads(compare(*pair, tmp_path / "out", "--plan").stdout)
    assert plan["matches"][0]["pairs"] == [["Functional.f.0.forward", "Functional.f.0.forward"]]
    assert files_in(tmp_path / "out") == []


def test_workbook(pair, tmp_path):
    assert compare(*pair, tmp_path / "out", "--xlsx").returncode == 0
    (path,) = (tmp_path / "out").glob("compare_result_*.xlsx")
    sheet = openpyxl.load_workbook(path)["Sheet1"]
    assert sheet.cell(2, 1).value == "Functional.f.0.forward.input.0"
    titles = [cell.value for cell in sheet[1]]
    assert sheet.cell(3, titles.index("Err_message") + 1).value.startswith('["warning: ')
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


RULER = ["Ruler Error", "Ruler Units", "Ruler Verdict", "Ruler Note"]
RED = "FFFF0000"


def cells_of(out):
    """The cells of a workbook by title, row by row."""
    (path,) = Path(out).glob("*.xlsx")
    title, *rows = openpyxl.load_workbook(path).worksheets[0].iter_rows()
    return [dict(zip((cell.value for cell in title), row)) for row in rows]


def fill(cell):
    return cell.fill.start_color.rgb if cell.fill.fill_type == "solid" else None


@pytest.fixture
def passed_over(tmp_path):
    """An input off by 25 %, which mindstudio-probe lets pass; all that follows only passes it on."""
    other = TENSOR | {"Max": 1.25, "Mean": 0.625, "Norm": 1.25}
    names = ["Functional.relu.0.forward", "Functional.relu.1.forward"]
    target = write_dump(tmp_path / "a" / "dump.json", {name: op(other) for name in names})
    return target, write_dump(tmp_path / "b" / "dump.json", {name: op() for name in names})


def test_a_workbook_shows_the_verdict_in_colour_beside_the_old_rule(passed_over, tmp_path):
    assert compare(*passed_over, tmp_path / "out", "--xlsx").returncode == 0
    wrong, result, *_ = cells_of(tmp_path / "out")
    assert list(wrong)[-4:] == RULER
    assert wrong["Result"].value == "pass" and fill(wrong["Result"]) is None
    assert wrong["Ruler Verdict"].value == "bug"
    assert wrong["Ruler Note"].value == "passes the old rule, differs by 25 %"
    assert wrong["Ruler Error"].value == 0.25, "relative to the golden run, as NormRelativeErr"
    assert wrong["NormRelativeErr"].value == "25.0%"
    assert {fill(wrong[title]) for title in RULER} == {RED}
    assert result["Ruler Verdict"].value == "inherited" and fill(result["Ruler Verdict"]) is None


def test_highlighting_by_the_old_rules_leaves_the_verdict_alone(tmp_path):
    path = write_dump(tmp_path / "a" / "dump.json", {"Functional.f.0.forward": op(Max=float("nan"))})
    assert compare(path, path, tmp_path / "out", "-hl").returncode == 0
    _, both_nan = cells_of(tmp_path / "out")
    assert fill(both_nan["NPU Name"]) == RED
    assert both_nan["Ruler Verdict"].value == "bit-equal" and fill(both_nan["Ruler Verdict"]) is None


@pytest.mark.parametrize("options", [["--xlsx", "--plain"], ["--xlsx", "-hl", "--plain"]])
def test_plain_workbooks_have_the_earlier_columns_only(passed_over, tmp_path, options):
    assert compare(*passed_over, tmp_path / "out", *options).returncode == 0
    assert not set(RULER) & set(cells_of(tmp_path / "out")[0])


def test_csv_has_the_verdict_when_it_is_asked_for(passed_over, tmp_path):
    assert compare(*passed_over, tmp_path / "out").returncode == 0
    assert not set(RULER) & set(read_csv(tmp_path / "out")[0])
    assert compare(*passed_over, tmp_path / "ruler", "--ruler").returncode == 0
    assert read_csv(tmp_path / "ruler")[0]["Ruler Note"] == "passes the old rule, differs by 25 %"
    done = compare(*passed_over, tmp_path / "both", "--ruler", "--plain")
    assert_refused(done, tmp_path / "both", 2, "--ruler", "--plain", "MSPROBE_PLAIN")


def test_every_percentage_is_of_the_golden_run(passed_over, tmp_path):
    done = compare(*passed_over, tmp_path / "out", "--json")
    report = json.loads(done.stdout)
    first = report["pairs"][0]["earlier_input_difference"]
    assert (first["detail"], first["input_error"]) == ("Norm differs by 25 %", 0.25)
    assert report["first_divergence"]["creator"]["input_error"] == 0.25
    assert report["verdict"]["origins"][0]["percent"] == 25


def test_the_report_advises_about_the_parameter_that_differs(tmp_path):
    """And not, as for any row whose input differs, to look for where the input comes from."""
    other = TENSOR | {"Max": 1.25, "Mean": 0.625, "Norm": 1.25}
    sides = [
        write_dump(
            tmp_path / side / "dump.json", {"Module.fc.Linear.forward.0": {**op(), "parameters": {"weight": weight}}}
        )
        for side, weight in (("a", other), ("b", TENSOR))
    ]
    done = compare(*sides, tmp_path / "out", "--html", "--json")
    if "built without its pages" in done.stderr:
        return
    (path,) = (tmp_path / "out").glob("*.html")
    packed = re.search(r'id="data">([^<]*)<', path.read_text())[1]
    shown = gzip.decompress(base64.b64decode(packed)).decode()
    lines = json.loads(done.stdout)["verdict"]["text"]["en"]
    assert lines[0] == "Origin: fc.weight differs by 25 % (Norm 1.25, golden 1) before it is used" and lines[0] in shown
    assert lines[-1].startswith("next: compare the checkpoints") and lines[-1] in shown
    assert "different already" not in shown + path.read_text().replace(packed, "")


@pytest.mark.parametrize("command", ["compare", "graph_visualize", "overflow_check", "verify-dump"])
def test_no_output_depends_on_the_seed_of_hashes(command, tmp_path):
    """Names come from files, so their hash is seeded; two seeds must give the same bytes."""
    data = {f"Functional.f{i % 7}.{i}.forward": op(Norm=1.5 if i > 400 else 1.0) for i in range(800)}
    target = write_dump(tmp_path / "a" / "step0" / "rank0" / "dump.json", data).parent
    golden = write_dump(
        tmp_path / "b" / "step0" / "rank0" / "dump.json", dict(list(data.items())[3:]) | {"Tensor.g.0.forward": op()}
    ).parent
    for folder in (target, golden):
        (folder / "construct.json").write_text(json.dumps({name: None for name in data}))
        (folder / "stack.json").write_text(json.dumps({"0": [list(data), ["File a.py, line 1, in f, f()"]]}))
    results = []
    for seed in ("1", "18446744073709551557"):
        out = tmp_path / f"out{seed}"
        options = {
            "compare": ["compare", "-tp", target, "-gp", golden, "-o", out, "--ruler", "--unmatched", "--json"],
            "graph_visualize": ["graph_visualize", "-tp", target, "-gp", golden, "-o", out, "-oc", "--json"],
            "overflow_check": ["overflow_check", "-i", tmp_path / "a", "-o", out, "--json"],
            "verify-dump": ["verify-dump", tmp_path / "a"],
        }[command]
        done = run(options, check=False, env={"MSPROBE_HASH_SEED": seed})
        said = re.sub(r"(?<!\d)20\d{12}(?!\d)|\d+\.\d+ s", "TIME", done.stdout.replace(str(out), "OUT"))
        files = {re.sub(r"\d{12,}", "TIME", p.name): contents(p, out) for p in sorted(out.rglob("*")) if p.is_file()}
        results.append((done.returncode, said, files))
    assert results[0] == results[1]


def contents(path, out):
    """Without the times in it."""
    if path.suffix == ".db":
        with sqlite3.connect(path) as db:
            return [re.sub(r"(?<!\d)20\d{12}(?!\d)", "TIME", line) for line in db.iterdump()]
    return re.sub(r"(?<!\d)20\d{12}(?!\d)", "TIME", path.read_text(encoding="utf-8").replace(str(out), "OUT"))


def test_older_command_form(pair, tmp_path):
    names = tmp_path / "compare.json"
    names.write_text(json.dumps({"npu_path": str(pair[0]), "bench_path": str(pair[1]), "is_print_compare_log": True}))
    done = run(["-f", "pytorch", "compare", "-i", names, "-o", tmp_path / "out", "-s", "-c"], check=False)
    assert done.returncode == 0, done.stderr
    (book,) = (tmp_path / "out").glob("*.xlsx")
    assert len(list(openpyxl.load_workbook(book).worksheets[0].values)) == 3, "workbooks only, as the older releases"
    assert not list((tmp_path / "out").glob("*.csv"))
    names.write_text('{"npu_path": "x"}')
    assert_refused(run(["compare", "-i", names, "-o", tmp_path / "no"], check=False), tmp_path / "no", 3, "bench_path")


SCALARS = {"input_args": [{"type": "int", "value": 3}], "input_kwargs": {}, "output": [{"type": "int", "value": 3}]}


def test_a_dump_without_tensors_is_of_either_kind(tmp_path):
    name = "Functional.f.0.forward"
    plain = write_dump(tmp_path / "plain" / "dump.json", {name: SCALARS})
    hashed = write_dump(tmp_path / "hashed" / "dump.json", {name: SCALARS, "Functional.g.0.forward": op(HASHED)})
    values = write_dump(tmp_path / "values" / "dump.json", {name: SCALARS, "Functional.g.0.forward": op()})
    for i, (target, golden, column) in enumerate(
        [(plain, hashed, "NPU MD5"), (hashed, plain, "NPU MD5"), (plain, values, "NPU max"), (plain, plain, "NPU max")]
    ):
        done = compare(target, golden, tmp_path / str(i))
        assert done.returncode == 0, done.stderr
        rows = read_csv(tmp_path / str(i))
        assert column in rows[0] and rows[0]["Result"] == "pass"
    assert_refused(compare(hashed, values, tmp_path / "mixed"), tmp_path / "mixed", 3, "summary_mode")
    for path in (plain, hashed):
        (path.parent / "construct.json").write_text(json.dumps(dict.fromkeys(json.loads(path.read_text())["data"])))
    out = tmp_path / "graph"
    done = run(["graph_visualize", "-tp", plain.parent, "-gp", hashed.parent, "-o", out, "--json"])
    assert json.loads(done.stdout)["task"] == "md5"


def test_checksums_of_keyword_arguments_and_parameters_alone_are_seen(tmp_path):
    """Where nothing else has one, the earlier tool takes the dump for one of statistics."""
    other = {**HASHED, "md5": "11111111"}
    for i, place in enumerate(("input_kwargs", "parameters")):
        sides = []
        for item in (HASHED, other):
            entry = {**SCALARS, place: {"weight": item}}
            sides.append(write_dump(tmp_path / f"{i}{len(sides)}" / "dump.json", {"Module.m.M.forward.0": entry}))
        assert compare(*sides, tmp_path / str(i)).returncode == 0
        (row,) = [row for row in read_csv(tmp_path / str(i)) if row["NPU Name"].endswith("weight")]
        assert (row["NPU MD5"], row["BENCH MD5"], row["Result"]) == ("0a0b0c0d", "11111111", "error")


def test_older_form_of_statistics(tmp_path):
    """Release 8.x: "Warning" where a statistic is off by half of the larger value, and no relative error against zero."""
    values = {"same": (1.0, 1.0), "near": (1.0, 1.4), "far": (1.0, 3.0), "zero": (0.0, 2.0), "grad": (1.0, 1.0)}
    sides = [{}, {}]
    for name, numbers in values.items():
        for side, data in enumerate(sides):
            more = {"requires_grad": bool(side)} if name == "grad" else {}
            data[f"Functional.{name}.0.forward"] = op(Norm=numbers[1 - side], **more)
    sides[0]["Functional.alone.0.forward"] = op()
    paths = [write_dump(tmp_path / str(i) / "dump.json", data) for i, data in enumerate(sides)]
    names = tmp_path / "compare.json"
    names.write_text(json.dumps({"npu_path": str(paths[0]), "bench_path": str(paths[1])}))
    for options in ([], ["-hl"]):
        out = tmp_path / f"out{options}"
        done = run(["-f", "pytorch", "compare", "-i", names, "-o", out, "-c", *options])
        assert done.returncode == 0, done.stderr
        (book,) = out.glob("*.xlsx")
        header, *rows = openpyxl.load_workbook(book).worksheets[0].values
        rows = {row[0]: dict(zip(header, row)) for row in rows}
        told = {n: rows[f"Functional.{n}.0.forward.output.0"] for n in [*values, "alone"]}
        results = {n: row["Result"] or "" for n, row in told.items()}
        assert results == {"same": "", "near": "", "far": "Warning", "zero": "Warning", "grad": "", "alone": "N/A"}
        messages = {n: (row["Err_message"] or "").strip() for n, row in told.items()}
        assert messages["far"].startswith("Need double check api accuracy.")
        assert messages["alone"] == "No bench data matched." and messages["same"] == ""
        assert messages["grad"].startswith("Requires_grad inconsistent.")
        assert ("yellow: requires_grad differs" in messages["grad"]) == bool(options), "-hl says why a row has a colour"
        assert told["zero"]["NormRelativeErr"] == "N/A" and told["zero"]["L2norm diff"] == "2.0"


def test_accepted_options(pair, tmp_path):
    done = compare(*pair, tmp_path / "out", "-m", "auto", "-tensor_log", "-fm")
    assert done.returncode == 0, done.stderr
    assert "fuzzy match" in done.stdout


def test_mappings(tmp_path):
    target = write_dump(
        tmp_path / "t" / "dump.json", {"Module.a.b.MyNorm.forward.0": op(), "Functional.f.0.forward": op()}
    )
    golden = write_dump(
        tmp_path / "g" / "dump.json", {"Module.c.b.Norm.forward.0": op(), "Functional.f.7.forward": op()}
    )
    files = {
        "-cm": "MyNorm: Norm\na.: c.\n",
        "-lm": "TopLayer: {a: c}\n",
        "-dm": "Module.a.b.MyNorm.forward.0.input.0: Functional.f.7.forward.output.0\n",
    }
    for option, text in files.items():
        path = tmp_path / f"m{option}.yaml"
        path.write_text(text)
        out = tmp_path / f"out{option}"
        done = compare(target, golden, out, option, path)
        assert done.returncode == 0, done.stderr
        partners = [row["Bench Name"] for row in read_csv(out)]
        first = "Functional.f.7.forward.output.0" if option == "-dm" else "Module.c.b.Norm.forward.0.input.0"
        assert partners[0] == first
        assert partners[2].startswith("Functional.f.7") == (option == "-lm"), option
        plan = json.loads(compare(target, golden, out, option, path, "--plan").stdout)["matches"][0]
        assert plan["how"] == {"-cm": "cell mapping", "-lm": "layer mapping", "-dm": "data mapping"}[option]
        assert len(plan["pairs"]) == (2 if option == "-lm" else 1)
    assert compare(target, golden, tmp_path / "d", "-cm", "--json").returncode == 0, "without a file"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("a: [1")
    assert_refused(compare(target, golden, tmp_path / "n", "-cm", wrong), tmp_path / "n", 3, "wrong.yaml, line ")
    assert_refused(compare(target, golden, tmp_path / "n", "-cm", "-lm"), tmp_path / "n", 2, "exclude each other")


def test_mindspore_against_pytorch(tmp_path):
    mindspore = {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": [2],
        "Max": 1.0,
        "Min": 0.0,
        "Mean": 0.5,
        "Norm": 1.0,
    }
    torch = {**mindspore, "type": "torch.Tensor", "dtype": "torch.float32", "requires_grad": True}
    names = {
        "Mint.add.0.forward": "Torch.add.0.forward",
        "Cell.net.fc.Dense.forward.0": "Module.net.fc.Linear.forward.0",
        "Functional.dense.0.forward": "Functional.linear.0.forward",
    }
    target = write_dump(tmp_path / "t" / "dump.json", {n: op(mindspore) for n in names}, framework="mindspore")
    golden = write_dump(tmp_path / "g" / "dump.json", {n: op(torch) for n in names.values()})
    for options in ([], ["-am"], ["-cm"]):
        out = tmp_path / f"out{len(options)}{options[:1]}"
        done = compare(target, golden, out, *options)
        assert done.returncode == 0, done.stderr
        rows = read_csv(out)
        assert [row["Bench Name"].rsplit(".", 2)[0] for row in rows[::2]] == list(names.values())
        assert {row["Result"] for row in rows} == {"pass"}, (
            "neither dtype nor requires_grad differ, only what they are called"
        )
        assert {row["Requires_grad Consistent"] for row in rows} == {"True"}
    assert_refused(compare(golden, golden, tmp_path / "no", "-am"), tmp_path / "no", 2, "MindSpore", "PyTorch")
    bad = write_dump(
        tmp_path / "b" / "dump.json", {n: op({**mindspore, "dtype": "Int64"}) for n in names}, framework="mindspore"
    )
    compare(bad, golden, tmp_path / "bad")
    assert {row["Bench Name"] for row in read_csv(tmp_path / "bad")} == {"N/A"}, "integers do not stand against floats"


@pytest.mark.parametrize(
    "options",
    [
        ["-am"],
        ["--consistent_check"],
        ["--backend", "fsdp"],
        ["-fr", "x"],
        ["-qfr", "x"],
        ["-cfr", "x"],
        ["--input_data", "x"],
        ["--input_shape", "x"],
        ["--output_size", "x"],
        ["--dym_shape_range", "x"],
        ["-ofs", "True"],
        ["-m", "offline_data"],
        ["-m", "torchair"],
        ["-m", "offline_model"],
    ],
    ids=" ".join,
)
def test_options_of_the_old_tool_that_are_not_here(pair, tmp_path, options):
    assert_refused(compare(*pair, tmp_path / "out", *options), tmp_path / "out", 2)


def test_missing_arguments(tmp_path):
    assert_refused(run(["compare", "-o", tmp_path / "out"], check=False), tmp_path / "out", 2, "-tp")


def test_ranks_pair_by_id_and_steps_by_number(tmp_path):
    for name in ("t/step0/rank0", "t/step0/rank2", "t/step1/rank0", "g/step0/rank2", "g/step0/rank0", "g/step3/rank0"):
        write_dump(tmp_path / name / "dump.json")
    done = compare(tmp_path / "t", tmp_path / "g", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    stamps = {n.rsplit("_", 1)[1] for n in tables_in(tmp_path / "out")}
    assert [n.rsplit("_", 1)[0] for n in tables_in(tmp_path / "out")] == [
        "compare_result_step0_rank0",
        "compare_result_step0_rank2",
    ]
    assert len(stamps) == 1
    assert f"no partner in the golden run: {tmp_path / 't' / 'step1'}" in done.stdout
    assert f"no partner in the target run: {tmp_path / 'g' / 'step3'}" in done.stdout


def test_rank_directories(tmp_path):
    for side in "tg":
        write_dump(tmp_path / side / "rank3" / "dump.json")
    assert compare(tmp_path / "t" / "rank3", tmp_path / "g" / "rank3", tmp_path / "out").returncode == 0
    assert files_in(tmp_path / "out")[0].startswith("compare_result_rank3_")


def test_two_frameworks_name_parameters_and_shape_tensors_otherwise(tmp_path):
    """gamma is weight, [4, 3] is [2, 2, 3], and a weight may be transposed; an output may not."""
    shapes = {"weight": ([3, 5], [5, 3]), "gamma": ([3], [3])}

    def layer(side, out):
        name = ("gamma", "weight")[side]
        tensors = [{**TENSOR, "shape": s} for s in ([[4, 3], [2, 2, 3]][side], out, shapes["gamma"][side])]
        return {
            "input_args": [tensors[0]],
            "input_kwargs": {},
            "output": [tensors[1]],
            "parameters": {name: tensors[2]},
        }

    def linear(side, out):
        made = layer(side, out)
        return {**made, "parameters": {"weight": {**TENSOR, "shape": shapes["weight"][side]}}}

    names = [
        ("Cell.ln.LayerNorm.forward.0", "Module.norm.LayerNorm.forward.0"),
        ("Cell.fc.Dense.forward.0", "Module.head.Linear.forward.0"),
    ]
    made = [
        {a[side]: f(side, o) for a, f, o in zip(names, (layer, linear), outs)}
        for side, outs in enumerate((([4, 3], [4, 5]), ([2, 2, 3], [5, 4])))
    ]
    target = write_dump(tmp_path / "t" / "dump.json", made[0], framework="mindspore")
    golden = write_dump(tmp_path / "g" / "dump.json", made[1])
    for a, b, own in ((target, golden, "gamma"), (golden, target, "weight")):
        out = tmp_path / own
        compare(a, b, out)
        rows = {row["NPU Name"]: row for row in read_csv(out)}
        failed = [name for name, row in rows.items() if row["Result"] == "error"]
        assert failed == [
            name for name in rows if name.endswith(("Dense.forward.0.output.0", "Linear.forward.0.output.0"))
        ]
        (norm,) = (row for name, row in rows.items() if name.endswith(f"parameters.{own}") and "Norm" in name)
        assert norm["Bench Name"].endswith({"gamma": "weight", "weight": "gamma"}[own])


def test_mindspore_against_mindspore(tmp_path):
    item = {**TENSOR, "type": "mindspore.Tensor", "dtype": "Float32"}
    data = {"Cell.net.fc.Dense.forward.0": op(item)}
    a = write_dump(tmp_path / "a" / "dump.json", data, framework="mindspore")
    half = {"Cell.net.fc.Dense.forward.0": op({**item, "dtype": "BFloat16"})}
    b = write_dump(tmp_path / "b" / "dump.json", half, framework="mindspore")
    assert compare(a, b, tmp_path / "out").returncode == 0
    assert {row["Err_message"] for row in read_csv(tmp_path / "out")} == {
        '["error: The dtype of NPU and Bench are inconsistent."]'
    }


# What the old tool does differently, on purpose.


def test_formulas_become_text_instead_of_an_abort(tmp_path):
    data = {
        "Functional.f.0.forward": {
            "input_args": [{"type": "str", "value": "=cmd|x"}, {"type": "str", "value": "-"}],
            "output": [],
        }
    }
    path = write_dump(tmp_path / "dump.json", data)
    assert compare(path, path, tmp_path / "csv").returncode == 0
    assert [row["NPU max"] for row in read_csv(tmp_path / "csv")] == ["'=cmd|x", "'-"]
    assert compare(path, path, tmp_path / "xlsx", "--xlsx").returncode == 0
    (book,) = (tmp_path / "xlsx").glob("*.xlsx")
    cell = openpyxl.load_workbook(book).active.cell(2, 17)
    assert (cell.value, cell.data_type) == ("=cmd|x", "s")


def test_whole_numbers_stay_whole(tmp_path):
    """The old tool writes 500.0 when all values of the column happen to be numbers."""
    ints = {
        "type": "torch.Tensor",
        "dtype": "torch.int64",
        "shape": [2],
        "Max": 500,
        "Min": 1,
        "Mean": 2.5,
        "Norm": 3.5,
    }
    path = write_dump(tmp_path / "dump.json", {"Functional.f.0.forward": op(ints)})
    compare(path, path, tmp_path / "out")
    assert {row["NPU max"] for row in read_csv(tmp_path / "out")} == {"500"}


def test_ops_without_a_direction_are_compared(tmp_path):
    path = write_dump(tmp_path / "dump.json", {"Custom.op": op()})
    compare(path, path, tmp_path / "out")
    assert [row["Bench Name"] for row in read_csv(tmp_path / "out")] == ["Custom.op.input.0", "Custom.op.output.0"]


def test_inputs_of_a_module_named_output_are_judged_as_inputs(tmp_path):
    name = "Module.layer.output.dense.Linear.forward.0"
    target = write_dump(tmp_path / "a.dump.json", {name: {"input_args": [{**TENSOR, "Norm": 9.0}], "output": [TENSOR]}})
    golden = write_dump(tmp_path / "b.dump.json", {name: op()})
    compare(target, golden, tmp_path / "out")
    assert [row["Result"] for row in read_csv(tmp_path / "out")] == ["pass", "pass"]


def test_ignored_ops_are_ignored_without_inputs_too(tmp_path):
    """The old tool takes the name of the function from the first input."""
    data = {
        "Torch.empty.0.forward": {"input_args": [], "input_kwargs": {}, "output": [{**TENSOR, "Max": float("inf")}]}
    }
    target = write_dump(tmp_path / "a.dump.json", data)
    golden = write_dump(tmp_path / "b.dump.json", {"Torch.empty.0.forward": {**op(), "input_args": []}})
    compare(target, golden, tmp_path / "out")
    assert [row["Result"] for row in read_csv(tmp_path / "out")] == ["pass"]


def test_an_item_listed_twice_gives_two_rows(tmp_path):
    """The old tool pairs each of them with each of the golden ones: four rows."""
    path = write_dump(tmp_path / "dump.json", {"Module.f.Linear.parameters_grad.0": {"weight": [TENSOR, TENSOR]}})
    compare(path, path, tmp_path / "out")
    name = "Module.f.Linear.parameters_grad.0.weight"
    assert [(row["NPU Name"], row["Bench Name"]) for row in read_csv(tmp_path / "out")] == [(name, name)] * 2


def test_large_integers_differ_by_what_they_differ(tmp_path):
    """The old tool subtracts doubles: 0.0."""

    def dump(side, value):
        item = {**TENSOR, "dtype": "torch.int64", "Max": value}
        return write_dump(tmp_path / side / "dump.json", {"Functional.f.0.forward": op(item)})

    compare(dump("a", 2**63 - 1), dump("b", 2**63 - 2), tmp_path / "out")
    assert {row["Max diff"] for row in read_csv(tmp_path / "out")} == {"1.0"}


# Bad input: an exit code, one line, nothing left behind.


def test_no_such_path(pair, tmp_path):
    assert_refused(
        compare(tmp_path / "absent", pair[1], tmp_path / "out"), tmp_path / "out", 3, "absent", "does not exist"
    )


@pytest.mark.parametrize("text", ["", "not json", "[1, 2]", '{"task": "statistics"}', '{"data": 5}', "\x00\x01"])
def test_not_a_dump(pair, tmp_path, text):
    bad = tmp_path / "bad" / "dump.json"
    bad.parent.mkdir()
    bad.write_text(text)
    assert_refused(compare(bad, pair[1], tmp_path / "out"), tmp_path / "out", 3, str(bad))


def test_broken_inside_an_op(tmp_path):
    text = write_dump(tmp_path / "b" / "dump.json").read_text()
    bad = tmp_path / "a" / "dump.json"
    bad.parent.mkdir()
    bad.write_text(text.replace('"Mean": 0.5', '"Mean": oops', 1))
    assert_refused(compare(bad, tmp_path / "b" / "dump.json", tmp_path / "out"), tmp_path / "out", 3, str(bad))


def test_truncated_dump_is_compared_with_a_warning(tmp_path):
    whole = large_dump(tmp_path / "b" / "dump.json", 20)
    cut = tmp_path / "a" / "dump.json"
    cut.parent.mkdir()
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    done = compare(cut, whole, tmp_path / "out")
    assert done.returncode == 3 and "was cut" in done.stdout.splitlines()[0]
    assert done.stderr.startswith("[msprobe] warning: ") and len(done.stderr.strip().splitlines()) == 2
    assert 0 < len(read_csv(tmp_path / "out")) < 40


def test_different_kinds(pair, tmp_path):
    out = tmp_path / "out"
    step = write_dump(tmp_path / "s" / "rank0" / "dump.json").parent.parent
    assert_refused(compare(step, pair[1], out), out, 3, "step directory", "file")
    assert_refused(compare(step, step / "rank0", out), out, 3, "step directory", "rank directory")
    md5 = write_dump(tmp_path / "m" / "dump.json", {"Functional.f.0.forward": op(HASHED)})
    assert_refused(compare(pair[0], md5, out), out, 3, "checksums")
    tensor = write_dump(tmp_path / "t" / "dump.json", task="tensor")
    assert_refused(compare(tensor, pair[1], out), out, 3, '"tensor"', '"statistics"')
    structure = write_dump(tmp_path / "u" / "dump.json", task="structure")
    assert_refused(compare(structure, pair[1], out), out, 3, '"structure"', "--structure")
    other = write_dump(tmp_path / "o" / "dump.json", framework="jax")
    assert_refused(compare(other, pair[1], out), out, 3, "jax", "pytorch", "mindspore")
    debug = write_dump(tmp_path / "d" / "debug.json", level="debug")
    assert_refused(compare(debug, pair[1], out), out, 3, "debug.json")


def test_no_ops(pair, tmp_path):
    empty = write_dump(tmp_path / "e" / "dump.json", {})
    assert_refused(compare(empty, pair[1], tmp_path / "out"), tmp_path / "out", 3, "no ops")


def test_output_that_is_a_file(pair, tmp_path):
    (tmp_path / "file").write_text("mine")
    done = compare(*pair, tmp_path / "file")
    assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_without_permission(pair, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o550)
    assert_refused(compare(*pair, tmp_path / "closed"), tmp_path / "closed", 3, "closed")


@pytest.mark.parametrize("options", [[], ["--xlsx"]], ids=["csv", "xlsx"])
def test_full_disk(small_disk, tmp_path, options):
    path = large_dump(tmp_path / "dump.json", 20000)
    done = compare(path, path, small_disk / "out", *options)
    assert done.returncode == 4, done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("[msprobe] error: ")
    assert "Traceback" not in done.stderr and files_in(small_disk / "out") == []


@pytest.mark.parametrize("options", [[], ["--xlsx"]], ids=["csv", "xlsx"])
def test_ctrl_c_leaves_nothing(tmp_path, options):
    path = large_dump(tmp_path / "dump.json", 60000)
    command = [find_command(), "compare", "-tp", path, "-gp", path, "-o", tmp_path / "out", *options]
    running = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not (tmp_path / "out").exists():
        time.sleep(0.002)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert len(errors.strip().splitlines()) == 1
    assert files_in(tmp_path / "out") == []


def test_same_table_for_any_thread_count(tmp_path):
    path = large_dump(tmp_path / "dump.json", 3000)
    tables = []
    for threads in ("1", "4"):
        compare(path, path, tmp_path / threads, env={"MSPROBE_THREADS": threads})
        (table,) = (tmp_path / threads).glob("*.csv")
        tables.append(table.read_bytes())
    assert tables[0] == tables[1]

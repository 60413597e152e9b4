"""`msprobe compare` of dumps with task tensor: files of all kinds, files that are not what they should be, the user's metrics."""

import csv
import json
import os
import sys
from pathlib import Path

import numpy
import openpyxl
import pytest
import torch
from launch import HERE, run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run
from test_compare_golden import assert_same_tensors, read_table

UNREADABLE = "warning: Dump file not found or read failed: "


def item(name, value, **more):
    shape, dtype = list(value.shape), str(value.dtype)
    stats = {"Max": float(value.max()), "Min": float(value.min()), "Mean": None, "Norm": None}
    return {
        "type": "torch.Tensor",
        "dtype": dtype,
        "shape": shape,
        **stats,
        "requires_grad": False,
        "data_name": name,
        **more,
    }


def write(folder, outputs, framework="pytorch", inputs=()):
    """A dump of one op; the items of its outputs."""
    (folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
    op = {"input_args": list(inputs), "input_kwargs": {}, "output": outputs}
    head = {"task": "tensor", "level": "L1", "framework": framework, "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": {"Functional.f.0.forward": op}}))
    return folder


def save(folder, name, value):
    path = folder / "dump_tensor_data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(value, path)
    return item(name, value)


def compare(target, golden, out, *options, check=True, **more):
    return run(
        ["compare", "-tp", target / "dump.json", "-gp", golden / "dump.json", "-o", out, *options], check=check, **more
    )


def table(out):
    (path,) = Path(out).glob("*.csv")
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


@pytest.fixture
def sides(tmp_path):
    """Two dumps of one output, and the directory for the result."""
    target, golden = tmp_path / "target", tmp_path / "golden"
    for folder, value in ((target, torch.tensor([1.0, 2.0, 3.0])), (golden, torch.tensor([1.0, 2.0, 4.0]))):
        write(folder, [save(folder, "Functional.f.0.forward.output.0.pt", value)])
    return target, golden, tmp_path / "out"


def test_our_dumps_compare_as_the_old_tool_does(old_python, tmp_path):
    """The writer is ours, the two tables are each tool's own."""
    for name, problem in (("golden", []), ("target", ["--problem"])):
        args = [
            HERE / "train_scenario.py",
            "nested",
            "--level",
            "mix",
            "--task",
            "tensor",
            "--steps",
            "1",
            "--out",
            tmp_path / name,
        ]
        run_python([*args, *problem], cwd=tmp_path)
    target, golden = (tmp_path / name / "step0" / "rank" for name in ("target", "golden"))
    if not target.exists():
        target, golden = (tmp_path / name / "step0" / "rank0" for name in ("target", "golden"))
    options = ["compare", "-tp", target / "dump.json", "-gp", golden / "dump.json", "-o", tmp_path / "theirs"]
    run_python([old_python.parent / "msprobe", *options], python=old_python, ours=False, cwd=tmp_path)
    compare(target, golden, tmp_path / "ours")
    (theirs,), (ours,) = ([read_table(p) for p in (tmp_path / d).glob("*.csv")] for d in ("theirs", "ours"))
    assert len(theirs) > 50
    # What the old tool passes without a word: tensors without elements have files here, and none there.
    assert_same_tensors({"table": theirs}, {"table": ours})
    assert {row[-4] for row in ours[1:]} >= {"pass", "error"}


def test_files_of_mindspore_and_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    values = [torch.tensor([[1.0, -2.0], [3.5, 4.0]]), torch.tensor([[1.0, -2.0], [3.5, 4.5]])]
    for folder, value in zip((tmp_path / "target", tmp_path / "golden"), values):
        (folder / "dump_tensor_data").mkdir(parents=True)
        numpy.save(folder / "dump_tensor_data" / "Mint.f.0.forward.output.0.npy", value.numpy())
        safetensors.save_file({"x": value}, folder / "dump_tensor_data" / "Mint.f.0.forward.output.1.safetensors")
        names = ("Mint.f.0.forward.output.0.npy", "Mint.f.0.forward.output.1.safetensors")
        outputs = [item(name, value, type="mindspore.Tensor", dtype="Float32") for name in names]
        write(folder, outputs, framework="mindspore")
    compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out")
    rows = table(tmp_path / "out")
    assert [row["NPU Name"] for row in rows] == ["Mint.f.0.forward.output.0", "Mint.f.0.forward.output.1"]
    for row in rows:
        assert (row["MaxAbsErr"], row["One Thousandth Err Ratio"], row["Result"]) == ("0.5", "0.75", "pass")


def test_names_and_links_out_of_the_dump_are_not_followed(sides, tmp_path):
    target, golden, out = sides
    secret = tmp_path / "secret.pt"
    torch.save(torch.tensor([1.0, 2.0, 4.0]), secret)
    data = target / "dump_tensor_data"
    os.symlink(secret, data / "link.pt")
    os.symlink(tmp_path, data / "folder")
    os.symlink(data / "Functional.f.0.forward.output.0.pt", data / "inside.pt")
    os.mkfifo(data / "pipe.pt")
    value = torch.tensor([1.0, 2.0, 4.0])
    names = {
        "link.pt": "leads out of the dump's directory",
        "folder/secret.pt": "leads out of the dump's directory",
        "../../secret.pt": '".."',
        str(secret): "absolute path",
        "pipe.pt": "not a regular file",
        "absent.pt": "does not exist",
    }
    write(target, [item(name, value) for name in [*names, "inside.pt"]])
    write(golden, [save(golden, f"{i}.pt", value) for i in range(len(names) + 1)])
    done = compare(target, golden, out, check=False)
    assert done.returncode == 3
    rows = table(out)
    for row, text in zip(rows, names.values()):
        assert row["Cosine"] == "unsupported" and row["Result"] == "warning"
        (message,) = json.loads(row["Err_message"])
        assert message.startswith(UNREADABLE) and text in message
    assert rows[-1]["MaxAbsErr"] == "1.0", "a link that stays inside is followed"
    assert f"warning: {len(names)} rows could not be compared" in done.stderr


def test_damaged_files(sides):
    target, golden, out = sides
    data = target / "dump_tensor_data"
    whole = (data / "Functional.f.0.forward.output.0.pt").read_bytes()
    damage = {"cut.pt": whole[: len(whole) // 2], "empty.pt": b"", "text.pt": b"no tensor" * 100}
    for name, content in damage.items():
        (data / name).write_bytes(content)
    torch.save([torch.ones(2), torch.ones(2)], data / "two.pt")
    value = torch.ones(3)
    write(target, [item(name, value) for name in [*damage, "two.pt"]])
    write(golden, [save(golden, f"{i}.pt", value) for i in range(4)])
    assert compare(target, golden, out, check=False).returncode == 3
    for row in table(out):
        assert row["Result"] == "warning" and json.loads(row["Err_message"])[0].startswith(UNREADABLE)
    assert "2 tensors, not one" in table(out)[-1]["Err_message"]


def test_without_the_folder_of_files(sides):
    target, golden, out = sides
    (golden / "dump_tensor_data").rename(golden / "elsewhere")
    done = compare(target, golden, out, check=False)
    assert done.returncode == 3 and done.stdout.startswith("1 row had no tensor: its file is missing")
    assert "dump_tensor_data" in done.stderr and "does not exist" in done.stderr
    assert [row["Result"] for row in table(out)] == ["warning"]


def test_threads_do_not_show(sides):
    target, golden, out = sides
    generator = torch.Generator().manual_seed(1)
    outputs = []
    for i in range(40):
        value = torch.randn(1000 + 37 * i, generator=generator)
        outputs.append((save(target, f"{i}.pt", value * (1 + 1e-4 * i)), save(golden, f"{i}.pt", value)))
    write(target, [a for a, _ in outputs])
    write(golden, [b for _, b in outputs])
    for threads in ("1", "5"):
        compare(target, golden, out / threads, env={"MSPROBE_THREADS": threads})
    (one,), (five,) = ([p.read_bytes() for p in (out / threads).glob("*.csv")] for threads in ("1", "5"))
    assert one == five


def test_a_file_against_itself_is_not_read(sides):
    """Hard links to one file: equal, whatever it holds; nothing but its head is looked at."""
    target, golden, out = sides
    for folder in (target, golden):
        (folder / "dump_tensor_data" / "Functional.f.0.forward.output.0.pt").unlink()
    value = torch.tensor([float("nan"), 2.0, float("inf")])
    name = "Functional.f.0.forward.output.0.pt"
    write(target, [save(target, name, value)])
    os.link(target / "dump_tensor_data" / name, golden / "dump_tensor_data" / name)
    write(golden, [item(name, value)])
    compare(target, golden, out)
    (row,) = table(out)
    assert [row[c] for c in ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio")] == [
        "1.0",
        "0.0",
        "0.0",
        "0.0",
        "1.0",
    ]
    assert row["Result"] == "pass"


@pytest.mark.parametrize("options", [["-tensor_log"], ["--is_print_compare_log", "--json"]])
def test_log_lines(sides, options):
    target, golden, out = sides
    done = compare(target, golden, out, *options)
    line = "[Functional.f.0.forward.output.0] Compare result: Cosine 0.9"
    if "--json" in options:
        assert line in done.stderr and line not in done.stdout
        assert json.loads(done.stdout)["pairs"][0]["mode"] == "tensor"
    else:
        assert line in done.stdout and ", MaxAbsErr 1.0, MaxRelativeErr 0.25, " in done.stdout


def older_form(target, golden, out, *options):
    names = Path(out).parent / "compare.json"
    paths = {"npu_path": str(target / "dump.json"), "bench_path": str(golden / "dump.json")}
    names.write_text(json.dumps({**paths, "is_print_compare_log": True}))
    done = run(["-f", "pytorch", "compare", "-i", names, "-o", out, "-c", *options])
    (path,) = Path(out).glob("*.xlsx")
    (sheet,) = openpyxl.load_workbook(path, read_only=True)
    header, *rows = sheet.values
    return done, [dict(zip(header, row)) for row in rows], list(header)


def test_older_form_has_the_older_verdicts(tmp_path):
    """Release 8.x: cosine below 0.99 and error above 0.001, cosine below 0.9, or an error above 1."""
    base = torch.arange(1.0, 9.0)
    other = torch.cat([base[:4], -base[4:]])
    cases = [
        (base, base, "Yes"),
        (base, base + 2, "No"),
        (base / 1000, base.flip(0) / 1000, "No"),
        (base / 1e5, other / 1e5, "No"),
        (base, base * 1.01, "Yes"),
        (base, base[:7], "Unmatched"),
        (base[0], base[1], "None"),
        (torch.tensor([float("nan"), 1]), torch.tensor([1.0, 1]), "No"),
    ]
    for side in (0, 1):
        folder = tmp_path / ("target", "golden")[side]
        items = [
            save(folder, f"Functional.f.0.forward.output.{i}.pt", case[side].clone()) for i, case in enumerate(cases)
        ]
        for item in items:
            item["Max"] = item["Min"] = 0.0
        write(folder, items)
    done, rows, header = older_form(tmp_path / "target", tmp_path / "golden", tmp_path / "out")
    assert "Result" not in header and header[header.index("Accuracy Reached or Not") + 1] == "Err_message"
    assert [row["Accuracy Reached or Not"] for row in rows] == [case[2] for case in cases]
    assert "[Functional.f.0.forward.output.0] Compare result: Cosine 1.0" in done.stdout, "is_print_compare_log"
    item = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": "0a0b0c0d"}
    for side, digest in (("t5", "0a0b0c0d"), ("g5", "0a0b0c0e")):
        dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
        op = {"input_args": [item], "input_kwargs": {}, "output": [{**item, "md5": digest}]}
        (tmp_path / side).mkdir()
        (tmp_path / side / "dump.json").write_text(json.dumps({**dump, "data": {"Functional.f.0.forward": op}}))
    _, rows, header = older_form(tmp_path / "t5", tmp_path / "g5", tmp_path / "md5")
    assert header[-1] == "Result" and [row["Result"] for row in rows] == ["Pass", "Different"]


METRIC = """
import torch

def column_name():
    return "Median Err"

def compare(n_tensor, b_tensor):
    print("not for the command")
    assert n_tensor.dtype == b_tensor.dtype and n_tensor.ndim == 1, (n_tensor.dtype, n_tensor.shape)
    return torch.median((n_tensor - b_tensor).abs()).item()
"""


def with_python(directory, **files):
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    return {"env": {"MSPROBE_PYTHON": sys.executable}}


def test_custom_metric(sides, tmp_path):
    target, golden, out = sides
    nan = torch.tensor([float("nan"), 2.0, 3.0])
    transposed = torch.arange(6.0).reshape(2, 3).t()[:, :1]
    half = torch.tensor([1.0, 2.5, 3.0], dtype=torch.bfloat16)
    for folder, shift in ((target, 1), (golden, 0)):
        outputs = [nan + shift, transposed + shift, half + shift, torch.ones(2, 2), torch.ones(2 + shift)]
        items = [save(folder, f"Functional.f.0.forward.output.{i}.pt", value) for i, value in enumerate(outputs)]
        write(folder, items, inputs=[{"type": "int", "value": 3}])
    more = with_python(
        tmp_path / "metrics",
        alg_median=METRIC,
        alg_text=METRIC.replace("Median Err", "Kind").replace(
            "return torch.median((n_tensor - b_tensor).abs()).item()", "return f'=kind of {n_tensor.dtype}'"
        ),
        other="1/0",
    )
    done = compare(target, golden, out, "--custom_metric", tmp_path / "metrics", **more)
    rows = table(out)
    columns = list(rows[0])
    at = columns.index("Five Thousandths Err Ratio")
    assert columns[at + 1 : at + 4] == ["Median Err", "Kind", "NPU max"]
    assert [row["Median Err"] for row in rows] == ["unsupported", "1.0", "1.0", "1.0", "unsupported", "shape unmatched"]
    assert rows[1]["Kind"] == "'=kind of torch.float32", "text stays text in a spreadsheet"
    assert rows[3]["Kind"] == "'=kind of torch.float32", "bfloat16 comes as float32"
    assert "failed in 1 rows; the first: Median Err: AssertionError" in done.stderr
    assert "not for the command" in done.stderr and "not for the command" not in done.stdout
    xlsx = compare(
        target, golden, tmp_path / "xlsx", "--xlsx", "--custom_metric", tmp_path / "metrics" / "alg_median.py", **more
    )
    assert xlsx.returncode == 0
    (book,) = (tmp_path / "xlsx").glob("*.xlsx")
    sheet = read_table(book)
    assert sheet[1][at + 1] == "'Median Err'" and sheet[3][at + 1] == "1.0" or sheet[3][at + 1] == "1"


@pytest.mark.parametrize(
    "text,word",
    [
        ("x = 1", "column_name"),
        ("def column_name(): return 'a'\ndef compare(n): return 1", "two arguments"),
        ("def column_name(): return ' '\ndef compare(n, b): return 1", "not empty"),
        ("def column_name(): return 'Cosine'\ndef compare(n, b): return 1", "exists already"),
        ("import absent_module", "ModuleNotFoundError"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_custom_metric_that_cannot_be_used(sides, tmp_path, text, word):
    more = with_python(tmp_path / "m", alg_x=text)
    done = compare(*sides, "--custom_metric", tmp_path / "m" / "alg_x.py", check=False, **more)
    assert done.returncode == 2 and word in done.stderr.strip().splitlines()[-1], done.stderr
    assert not list(sides[2].glob("*.csv"))


def test_nothing_is_imported_from_the_current_directory(sides, tmp_path, monkeypatch):
    here = tmp_path / "somebody_elses"
    here.mkdir()
    for name in ("json", "torch", "socket", "inspect"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')")
    monkeypatch.chdir(here)
    more = with_python(tmp_path / "m", alg_x="def column_name(): return 'a'\ndef compare(n, b): return n.sum()")
    compare(*sides, "--custom_metric", tmp_path / "m", **more)
    (row,) = table(sides[2])
    assert row["a"] not in ("", "unsupported")
    assert not (tmp_path / "was_run").exists()


def test_custom_metric_whose_process_ends(sides, tmp_path):
    text = "import os\ndef column_name(): return 'a'\ndef compare(n, b): os._exit(3)"
    more = with_python(tmp_path / "m", alg_x=text)
    done = compare(*sides, "--custom_metric", tmp_path / "m", **more)
    (row,) = table(sides[2])
    assert (row["a"], row["MaxAbsErr"]) == ("unsupported", "1.0")
    assert "the process of --custom_metric ended" in done.stderr


def test_ranks_and_fuzzy(tmp_path):
    for side in ("target", "golden"):
        for rank in range(2):
            folder = tmp_path / side / "step0" / f"rank{rank}"
            write(
                folder,
                [save(folder, "Functional.f.0.forward.output.0.pt", torch.ones(3) * (1 + (side == "target" and rank)))],
            )
    done = run(
        [
            "compare",
            "-tp",
            tmp_path / "target" / "step0",
            "-gp",
            tmp_path / "golden" / "step0",
            "-o",
            tmp_path / "out",
            "-fm",
        ]
    )
    assert done.stdout.count("(tensor, fuzzy match") == 2
    cells = [
        read_table(tmp_path / "out" / name)[1][10]
        for name in sorted(os.listdir(tmp_path / "out"))
        if name.endswith("csv")
    ]
    assert cells == ["0.0", "1.0"]


def test_statistics_and_tensor_are_not_compared(sides):
    target, golden, out = sides
    text = json.loads((golden / "dump.json").read_text())
    (golden / "dump.json").write_text(json.dumps({**text, "task": "statistics"}))
    done = compare(target, golden, out, check=False)
    assert done.returncode == 3 and '"tensor"' in done.stderr and '"statistics"' in done.stderr

"""api_precision_compare and the standards behind it give the answers of mindstudio-probe, cell by cell."""

import csv
import json
import os
import subprocess
from pathlib import Path

import pytest
from graph_cases import missing, run

HERE = Path(__file__).resolve().parent / "standards"
ROOT = HERE.parents[2]
# What mindstudio-probe says of a figure that is not there; ours names the column.
NO_VALUE = "ERROR: Input data is an empty string"


def rows(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def the(folder, what):
    (found,) = folder.glob(f"api_precision_compare_{what}_*.csv")
    return found


def compare(npu, gpu, out, *options):
    return run(["api_precision_compare", "-npu", npu, "-gpu", gpu, "-o", out, *options], check=False)


def assert_same(ours, theirs):
    ours, theirs = rows(ours), rows(theirs)
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs):
        assert own[:-1] == other[:-1]
        assert own[-1] == other[-1] or (other[-1] == NO_VALUE and own[-1].endswith(" has no value"))


def test_tables_are_those_of_recorded_answers(tmp_path):
    tables = HERE / "tables"
    done = compare(tables / "npu.csv", tables / "gpu.csv", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["passed"], summary["failed"], summary["skipped"]) == (19, 13, 12)
    assert "5 rows" in summary["warnings"][0]
    for what in ("details", "result"):
        assert_same(the(tmp_path, what), tables / f"old_{what}.csv")
        assert the(tmp_path, what).read_bytes().startswith(b"\xef\xbb\xbfAPI Name,")


def test_release_8_chooses_by_name(tmp_path):
    tables = HERE / "tables"
    assert compare(tables / "npu.csv", tables / "gpu.csv", tmp_path, "--standards", "8.1").returncode == 0
    algorithms = {row[0].split(".")[1]: set() for row in rows(the(tmp_path, "details"))[1:]}
    for row in rows(the(tmp_path, "details"))[1:]:
        algorithms[row[0].split(".")[1]].add(row[-2])
    # The files are from 26.2, where only the benchmark's figures are there.
    assert "标杆比对法" in algorithms["softmax"] and "标杆比对法" not in algorithms["mul"]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", 3, "is empty"),
        ("API Name,Shape\nTorch.add.0.forward.output.0,(1,)\n", 3, "lacks the columns DEVICE Dtype, "),
        (None, 3, "several rows Torch."),
    ],
)
def test_files_that_do_not_fit(tmp_path, text, code, said):
    gpu = tmp_path / "gpu.csv"
    whole = (HERE / "tables" / "gpu.csv").read_text(encoding="utf-8-sig")
    gpu.write_text(whole + whole.split("\n", 1)[1] if text is None else text)
    done = compare(HERE / "tables" / "npu.csv", gpu, tmp_path / "out")
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_tables_of_other_dumps(tmp_path):
    header = (HERE / "tables" / "gpu.csv").read_text(encoding="utf-8-sig").split("\n", 1)[0]
    (tmp_path / "gpu.csv").write_text(header + "\n")
    done = compare(HERE / "tables" / "npu.csv", tmp_path / "gpu.csv", tmp_path / "out")
    assert done.returncode == 3 and "no row in common" in done.stderr
    assert not (tmp_path / "out").exists()


def test_tables_are_those_of_the_earlier_tool(tmp_path, old_python):
    subprocess.run([old_python, HERE / "old_tables.py", tmp_path / "made", "60"], check=True, capture_output=True)
    files = [next((tmp_path / "made" / side).glob("*details*")) for side in ("npu", "gpu")]
    assert compare(*files, tmp_path / "out").returncode == 0
    for what in ("details", "result"):
        assert_same(the(tmp_path / "out", what), the(tmp_path / "made" / "old", what))


def test_standards_are_those_of_the_earlier_tool(tmp_path, old_python):
    program = ROOT / "build" / "release" / "lab_test"
    if not program.exists():
        missing(f"{program} is not built: run make unit")
    answers = tmp_path / "answers.txt"
    with open(answers, "w", encoding="ascii") as file:
        subprocess.run([old_python, HERE / "old_answers.py", "100000", "150"], check=True, stdout=file)
    done = subprocess.run(
        [program, "--gtest_filter=Standards.FiguresOfGivenAnswers"],
        env={**os.environ, "MSPROBE_ANSWERS_26": answers},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "1050 answers of 26.2" in done.stdout

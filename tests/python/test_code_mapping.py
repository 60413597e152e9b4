"""`msprobe code_mapping`, and the lines of source in comparisons of kernels."""

import csv
import shutil
import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

RANK = Path(__file__).resolve().parents[1] / "golden" / "mindspore" / "code_mapping" / "rank_0"
IR = RANK / "graphs" / "ms_output_trace_code_graph_0.ir"


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def test_files(tmp_path):
    run(["-f", "mindspore", "code_mapping", "--ir", IR, "--dump_data", RANK / "Net" / "0" / "0", "--output", tmp_path])
    (path,) = tmp_path.glob("code_mapping_*.csv")
    table = {Path(row["File Path"]).name: row for row in rows(path)}
    assert set(table) == {p.name for p in (RANK / "Net" / "0" / "0").iterdir()}
    for name, row in table.items():
        kernel = name.split(".")[1]
        assert row["Scope Name"] == kernel.replace("Default_", "Default/")
        lines = row["Code Stack"].splitlines()
        assert lines[0].startswith("In file ") and not any(line.endswith("/") for line in lines)
        assert any(line.startswith("In file /repo/model.py:81, ") for line in lines)


def test_statistics_get_two_columns(tmp_path):
    header = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value"
    path = tmp_path / "statistic.csv"
    lines = [
        'Conv2D,Default_Conv2D-op0,0,0,5,input,0,4,float32,"(1,1)",2.5,',
        "AddN,Other-op1,0,0,6,output,0,4,float32,(),1",
    ]
    path.write_text("\n".join([header, *lines]) + "\n")
    for _ in range(2):  # the second time the columns are filled again
        run(["code_mapping", "--ir", IR, "--dump_data", path])
        first, second = rows(path)
        assert list(first)[-3:] == ["Unnamed: 11", "Code Stack", "Scope Name"]
        assert first["Scope Name"] == "Default/Conv2D-op0" and first["Code Stack"].startswith("In file ")
        assert first["Shape"] == "(1,1)" and first["Max Value"] == "2.5"
        assert second["Scope Name"] == second["Code Stack"] == ""


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.ir").write_text("nothing\n")
    for ir, dump in ((tmp_path / "x.ir", RANK / "Net" / "0" / "0"), (IR, tmp_path)):
        done = run(["code_mapping", "--ir", ir, "--dump_data", dump, "--output", tmp_path / "out"], check=False)
        assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_rows_of_kernels_show_their_line(tmp_path):
    other = tmp_path / "other" / "rank_0"
    shutil.copytree(RANK, other)
    for path in other.glob("Net/0/0/*op0.*output.0.*"):
        numpy.save(path, numpy.load(path) + 1)
    args = ["compare", "-tp", RANK.parent, "-gp", other.parent, "--rank", "0", "-o"]
    run([*args, tmp_path / "out"])
    run([*args, tmp_path / "plain", "--plain"])
    (path,), (plain,) = (list((tmp_path / d).glob("*.csv")) for d in ("out", "plain"))
    table = rows(path)
    assert all(row["NPU Source"].startswith("/repo/model.py:81 x = self.pool(") for row in table)
    assert "NPU Source" not in rows(plain)[0]

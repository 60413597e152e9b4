"""`msprobe compare -m atb`: dumps of Ascend's library of transformer operators, beside what the old tool makes of them."""

import json
import os
import stat
import struct
import sys
from pathlib import Path

import openpyxl
import pytest
from launch import run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

HEADER = "Device And PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,Max,Min,Mean,Norm,Tensor Path"
NAN, INF = float("nan"), float("inf")


def atb(dims, dtype, data):
    head = f"$Version=1.0\n$Object.Count=1\nformat=2\ndtype={dtype}\ndims={dims}\n$Object.data=0,{len(data)}\n$End=1\n"
    return head.encode() + data


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def write(folder, tensors=None, stats=None, execution="0"):
    """tensors: {name: bytes of the file, or None for a file that is missing}; stats: {name: four texts}."""
    rows = [HEADER]
    for i, name in enumerate(tensors if tensors is not None else stats):
        relative = f"tensors/0_1/{i}_{name}/intensor0.bin"
        cells = ["N/A"] * 4 if tensors is not None else stats[name]
        path = f"/x/atb_dump_data/data/0_1/0/{relative}" if tensors is not None else "N/A"
        rows.append(f'0_77,{execution},Layer/{name},Op,0_{i},inTensor,0,float32,nd,"2,3",{",".join(cells)},{path}')
        if tensors is not None and tensors[name] is not None:
            file = folder / relative
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(tensors[name])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "statistic.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def compare(target, golden, out, *options, **more):
    return run(["compare", "-m", "atb", "-tp", target, "-gp", golden, "-o", out, *options], **more)


def workbook(folder):
    (path,) = Path(folder).glob("*.xlsx")
    (sheet,) = openpyxl.load_workbook(path, read_only=True)
    return path.name.rsplit("_", 1)[0], list(sheet.values)


def theirs(old_python, target, golden, out):
    args = ["compare", "-m", "atb", "-tp", target, "-gp", golden, "-o", out]
    run_python([old_python.parent / "msprobe", *args], python=old_python, ours=False, cwd=target.parent)
    return workbook(out)


SIX = floats(1, 2, 3, 4, 5, 6)
TENSORS = {
    "Same": (atb("2,3", 0, SIX), atb("2,3", 0, SIX)),
    "Differs": (atb("2,3", 0, SIX), atb("2,3", 0, floats(1, 2, 3.5, 4, 5, 0))),
    "Zero": (atb("2,3", 0, floats(*[0] * 6)), atb("2,3", 0, SIX)),
    "NanSame": (atb("2,3", 0, floats(1, NAN, 3, 4, 5, INF)), atb("2,3", 0, floats(1, NAN, 3, 4, 5.5, INF))),
    "NanMoved": (atb("2,3", 0, floats(NAN, 2, 3, 4, 5, 6)), atb("2,3", 0, SIX)),
    "Shape": (atb("2,3", 0, SIX), atb("3,2", 0, SIX)),
    "One": (atb("1", 0, floats(2)), atb("1", 0, floats(3))),
    "OneByOne": (atb("1,1", 3, struct.pack("<i", 7)), atb("1,1", 3, struct.pack("<i", 7))),
    "Half": (
        atb("4", 1, struct.pack("<4e", 0.1, 60000, 6e-8, 3)),
        atb("4", 1, struct.pack("<4e", 0.1, 60000, 6e-8, 3.5)),
    ),
    "Bool": (atb("2", 12, b"\0\1"), atb("2", 12, b"\1\1")),
    "Long": (atb("2", 9, struct.pack("<2q", 5, -9)), atb("2", 9, struct.pack("<2q", 5, 9))),
    "Missing": (None, atb("2,3", 0, SIX)),
    "Cut": (atb("2,3", 0, SIX[:-1]), atb("2,3", 0, SIX)),
    "Type": (atb("2,3", 44, SIX), atb("2,3", 0, SIX)),
}


def test_tensors_are_compared_as_the_old_tool_does(old_python, tmp_path):
    target = write(tmp_path / "t", {name: pair[0] for name, pair in TENSORS.items()})
    golden = write(tmp_path / "g", {name: pair[1] for name, pair in TENSORS.items()})
    done = compare(target, golden, tmp_path / "ours")
    assert "compare (atb, tensor): 14 tensors; 0 only in the target" in done.stdout
    assert "warning: 3 rows could not be compared because a file could not be read" in done.stderr
    name, rows = workbook(tmp_path / "ours")
    old_name, old_rows = theirs(old_python, target, golden, tmp_path / "theirs")
    assert name == old_name == "atb_tensor_compare_result"
    assert rows[0] == old_rows[0] and len(rows) == len(old_rows) == 15
    for row, old in zip(rows[1:], old_rows[1:]):
        assert row == old, row[0]


STATS = {
    "Same": (["1.5", "-2", "0", "3"], ["1.5", "-2", "0", "3"]),
    "Differs": (["1.5", "-2", "0.25", "3"], ["1", "-3", "0", "4"]),
    "Odd": (["inf", "N/A", "nan", "1e30"], ["1", "1", "1", "-1e30"]),
}


def test_statistics_are_compared_as_the_old_tool_does(old_python, tmp_path):
    target = write(tmp_path / "t", stats={name: pair[0] for name, pair in STATS.items()})
    golden = write(tmp_path / "g", stats={name: pair[1] for name, pair in STATS.items()})
    compare(target, golden, tmp_path / "ours")
    assert workbook(tmp_path / "ours") == theirs(old_python, target, golden, tmp_path / "theirs")


def test_executions_are_rows_of_their_own(tmp_path):
    """The old tool keeps the last of them."""
    for side, values in (("t", ("1", "2")), ("g", ("1", "4"))):
        folder = write(tmp_path / side, stats={"Op": [values[0]] * 4})
        more = write(tmp_path / f"{side}1", stats={"Op": [values[1]] * 4}, execution="1") / "statistic.csv"
        with open(folder / "statistic.csv", "a", encoding="utf-8") as file:
            file.write(more.read_text(encoding="utf-8").splitlines()[1] + "\n")
    done = compare(tmp_path / "t", tmp_path / "g", tmp_path / "out", "--json")
    told = json.loads(done.stdout)
    assert (told["mode"], told["rows"], told["golden_only"]) == ("atb_stats", 2, 0)
    assert stat.S_IMODE(os.stat(told["file"]).st_mode) == 0o640
    rows = workbook(tmp_path / "out")[1]
    assert [row[rows[0].index("Max Diff")] for row in rows[1:]] == ["0.0", "-2.0"]


def test_names_do_not_lead_out_of_the_dump(tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(atb("2,3", 0, SIX))
    for side in ("t", "g"):
        folder = write(tmp_path / side, {"Op": atb("2,3", 0, SIX), "Link": None})
        link = folder / "tensors" / "0_1" / "1_Link" / "intensor0.bin"
        link.parent.mkdir(parents=True)
        link.symlink_to(secret)
        table = folder / "statistic.csv"
        table.write_text(table.read_text().replace("/0/tensors/0_1/0_Op/intensor0.bin", "/0/../secret.bin"))
    done = compare(tmp_path / "t", tmp_path / "g", tmp_path / "out")
    assert "2 rows could not be compared" in done.stderr and "leads out of the dump's directory" in done.stderr
    rows = workbook(tmp_path / "out")[1]
    assert {row[rows[0].index("Target Max")] for row in rows[1:]} == {"N/A"}


def test_what_is_no_pair_of_dumps(tmp_path):
    tensors = write(tmp_path / "tensors", {"Op": atb("2,3", 0, SIX)})
    stats = write(tmp_path / "stats", stats={"Op": ["1"] * 4})
    other = write(tmp_path / "other", stats={"Else": ["1"] * 4})
    empty = write(tmp_path / "empty", stats={})
    cases = [
        ([tensors, stats], 3, "only statistics"),
        ([stats, other], 3, "no tensor of"),
        ([stats, empty], 3, "lists no tensors"),
        ([stats, tmp_path], 3, "statistic.csv"),
        ([stats / "statistic.csv", stats / "statistic.csv"], 3, "two directories"),
    ]
    for paths, code, word in cases:
        done = compare(*paths, tmp_path / "out", check=False)
        assert done.returncode == code and word in done.stderr and done.stderr.count("\n") == 1, done.stderr
    done = compare(stats, stats, tmp_path / "out", "--xlsx", check=False)
    assert done.returncode == 2 and "--xlsx does not apply to -m atb" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("threads", ["1", "4"])
def test_threads_do_not_show(threads, tmp_path):
    names = [f"Op{i}" for i in range(100)]
    for side, step in (("t", 0), ("g", 1)):
        write(tmp_path / side, {name: atb("2", 0, floats(i, i + step)) for i, name in enumerate(names)})
    compare(tmp_path / "t", tmp_path / "g", tmp_path / "out", env={"MSPROBE_THREADS": threads})
    rows = workbook(tmp_path / "out")[1]
    assert [row[rows[0].index("Max Absolute Err")] for row in rows[1:]] == ["1.0"] * 100
    assert [row[0] for row in rows[1:]] == [f"0_Layer/{i}_{name}/inTensor.0" for i, name in enumerate(names)]

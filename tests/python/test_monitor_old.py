"""The csv files of mindstudio-probe's TrainerMon and of ours on the same seeds, and its readers on ours.

publish_monitor.py runs all cases; here is the smallest.
"""

import os
import subprocess
import sys

import monitor_files
import pytest
from conftest import REPO
from launch import run_python

SCENARIO = REPO / "tests" / "python" / "monitor_scenario.py"


def train(old_python, directory, *scenario):
    """Leaves what each tool writes in `old` and `new`."""
    for python, name in ((old_python, "old"), (sys.executable, "new")):
        run_python([*scenario, directory / name], python=python, ours=name == "new", cwd=directory)


@pytest.mark.deep
def test_files_are_those_of_the_old_tool(old_python, tmp_path):
    train(old_python, tmp_path, SCENARIO, "micro")
    old, new = (monitor_files.directories(str(tmp_path / name)) for name in ("old", "new"))
    lines, cells, _ = monitor_files.differences(old, new)
    assert not lines
    assert cells > 10_000
    source = f"""
from msprobe.pytorch.monitor.csv2tb import csv2tensorboard_by_step
csv2tensorboard_by_step({str(tmp_path / "new/monitor")!r}, output_dirpath={str(tmp_path / "theirs")!r})
"""
    subprocess.run([old_python, "-c", source], check=True, capture_output=True, cwd=tmp_path)
    subprocess.run(
        [sys.executable, "-c", source.replace("theirs", "ours")], check=True, capture_output=True, cwd=tmp_path
    )
    read = """
import glob, json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = {}
for path in sorted(glob.glob(sys.argv[1] + "/rank0/*")):
    events = EventAccumulator(path)
    events.Reload()
    for tag in events.Tags()["scalars"]:
        found[path.rsplit("/", 1)[1] + "|" + tag] = [(e.step, e.value if e.value == e.value else None) for e in events.Scalars(tag)]
print(json.dumps(found, sort_keys=True))
"""
    texts = [
        subprocess.run(
            [old_python, "-c", read, tmp_path / name], check=True, capture_output=True, text=True, cwd=tmp_path
        ).stdout
        for name in ("theirs", "ours")
    ]
    assert texts[0] == texts[1] and len(texts[0]) > 1000
    old_msprobe = os.path.join(os.path.dirname(old_python), "msprobe")
    command = [
        old_msprobe,
        "data2db",
        "--db",
        tmp_path / "db",
        "--data",
        tmp_path / "new/monitor",
        "--format",
        "monitor",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (tmp_path / "db" / "monitor_data.trend.db").exists(), done.stdout + done.stderr


@pytest.mark.deep
def test_files_of_v2_are_those_of_the_old_tool(old_python, tmp_path):
    scenario = SCENARIO.with_name("monitor_v2_scenario.py")
    train(old_python, tmp_path, scenario)
    old, new = (monitor_files.tables(str(tmp_path / name / "rank_0")) for name in ("old", "new"))
    assert sorted(old) == sorted(new)
    for name, rows in old.items():
        ours = [row for row in new[name] if row[3] != "unreduced"]  # which theirs loses
        keys = rows[0].index("min")
        assert [row[:keys] for row in rows] == [row[:keys] for row in ours]
        for a, b in zip(rows[1:], ours[1:]):
            size = float(a[rows[0].index("norm")])
            for p, q in zip(a[keys:], b[keys:]):
                assert float(p) == pytest.approx(float(q), rel=1e-5, abs=monitor_files.MEAN * size)

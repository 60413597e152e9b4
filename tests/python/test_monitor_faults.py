"""Monitors that meet a fault: a sample of publish_monitor_faults.py, whose table is in docs/en/monitor/README.md."""

import subprocess
import sys

from conftest import REPO, missing


def test_kills_and_faults(tmp_path):
    mounted = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if mounted.returncode != 0:
        missing("file systems of the test's own need root and mount")
    script = REPO / "tests" / "python" / "publish_monitor_faults.py"
    done = subprocess.run(
        ["unshare", "-m", sys.executable, script, tmp_path / "out", "3"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as it should be") == 8

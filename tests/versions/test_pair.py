"""pair.py in the environment of the tests, with some of its checks; all of them for all pairs: `make test-versions`."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_some_checks_of_this_pair(tmp_path):
    command = [sys.executable, HERE / "pair.py", tmp_path, "mix", "monitor", "two ranks"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=500)
    checks = json.loads((tmp_path / "results.json").read_text())["checks"]
    assert done.returncode == 0 and all(check["passed"] for check in checks.values()), done.stdout + done.stderr
    assert list(checks) == ["mix", "monitor", "two ranks"]


def test_a_pair_that_fails_says_so(tmp_path):
    done = subprocess.run(
        [sys.executable, str(HERE / "pair.py"), str(tmp_path), "acc_check"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 1 and "FAIL acc_check" in done.stdout and "no dump tensor" in done.stdout

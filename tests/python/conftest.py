"""Shared fixtures: where the packages are, and how a script runs in an interpreter of its own."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import missing

REPO = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def _package_root() -> Path:
    """The directory that holds the package: where it is installed, else the checkout."""
    spec = importlib.util.find_spec("msprobe")
    if spec is None or spec.origin is None:
        return REPO / "python"
    return Path(spec.origin).resolve().parents[1]


PACKAGE_ROOT = _package_root()
if str(PACKAGE_ROOT) not in sys.path:
    sys.path.insert(0, str(PACKAGE_ROOT))


class Script(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run_python(args, *, python=sys.executable, cwd=None, env=None, timeout=300, ours=True, check=True) -> Script:
    """Runs `python *args`; with `ours`, our package and the shared test code can be imported."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    paths = [str(HERE), str(PACKAGE_ROOT)] if ours else [str(HERE)]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    done = subprocess.run(
        [str(python), *map(str, args)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout
    )
    result = Script(done.returncode, done.stdout, done.stderr)
    if check:
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return result


@pytest.fixture(scope="session")
def old_python() -> Path:
    """The interpreter in whose environment the earlier tool is installed."""
    path = Path(os.environ.get("MSPROBE_OLD_PYTHON", REPO / ".venv-old" / "bin" / "python"))
    if path.exists():
        return path
    missing(f"the earlier tool is not installed at {path}; set MSPROBE_OLD_PYTHON")
    return None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        missing(f"a small disk needs root and mount: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def run_script(tmp_path):
    """Runs source text as a script in the test's own directory."""

    def run(source: str, **options) -> Script:
        script = tmp_path / "script.py"
        script.write_text(source, encoding="utf-8")
        return run_python([script], cwd=tmp_path, **options)

    return run

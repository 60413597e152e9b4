"""For all Python tests: shared fixtures, the two tiers, and how long each test took."""

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import pytest
import warm
from graph_cases import missing
from launch import REPO, STARTED, Script, run_python, starts_otherwise
from tiers import is_deep

TIMES = REPO / "out" / "test_times.json"


def pytest_configure(config):
    config.addinivalue_line("markers", "deep: part of `make test-deep`, not of `make test`")


def pytest_ignore_collect(collection_path, config):
    """`make test` does not even import what only the other tier needs."""
    tests = REPO / "tests"
    if config.option.markexpr == "not deep" and collection_path.suffix == ".py" and tests in collection_path.parents:
        return is_deep(collection_path.relative_to(tests).as_posix()) or None
    return None


def _times():
    try:
        return json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}


def pytest_collection_modifyitems(items):
    """Marks what is deep. Files that took longest come first, so that none is alone at the end."""
    for item in items:
        if "old_python" in item.fixturenames or is_deep(item.path.relative_to(REPO / "tests").as_posix()):
            item.add_marker(pytest.mark.deep)
    totals = defaultdict(float)
    for name, took in _times().items():
        totals[name.split("::")[0]] += took["cpu"]
    items.sort(key=lambda item: -totals[item.nodeid.split("::")[0]])


def _processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used) + warm.processor_seconds()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    item.stash[_BEGAN] = (time.monotonic(), _processor_seconds())
    left = starts_otherwise({**os.environ, **STARTED})
    if left:
        warnings.warn(f"a module or an earlier test left {left} in os.environ: every script starts cold", stacklevel=1)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    yield
    began, used = item.stash[_BEGAN]
    item.user_properties.append(("seconds", round(time.monotonic() - began, 2)))
    item.user_properties.append(("cpu", round(_processor_seconds() - used, 2)))


_BEGAN = pytest.StashKey()
_took = {}


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        _took[report.nodeid] = dict(report.user_properties)


def pytest_sessionfinish(session):
    """Kept by the process that collects the reports; tests that did not run keep what they took before."""
    if _took and not hasattr(session.config, "workerinput"):
        TIMES.parent.mkdir(exist_ok=True)
        TIMES.write_text(json.dumps({**_times(), **_took}, indent=0, sort_keys=True) + "\n")


@pytest.fixture(scope="session")
def old_python() -> Path:
    """The interpreter in whose environment the earlier tool is installed."""
    path = Path(os.environ.get("MSPROBE_OLD_PYTHON", REPO / ".venv-old" / "bin" / "python"))
    if (path.parent / "msprobe").exists():
        return path
    missing(f"the earlier tool is not installed at {path}; set MSPROBE_OLD_PYTHON")
    return None


def _interpreter(variable, environment, what):
    path = Path(os.environ.get(variable, REPO / environment / "bin" / "python"))
    if not (path.parent / "msprobe").exists():
        missing(f"{what} is not installed at {path}; run tools/setup.sh deep, or set {variable}")
    return path


@pytest.fixture(scope="session")
def mindspore_python() -> Path:
    """The interpreter in whose environment MindSpore and our package are installed."""
    return _interpreter("MSPROBE_MINDSPORE_PYTHON", ".venv-ms", "MindSpore")


@pytest.fixture(scope="session")
def old_mindspore_python() -> Path:
    """The interpreter in whose environment MindSpore and the earlier tool are installed."""
    return _interpreter("MSPROBE_OLD_MINDSPORE_PYTHON", ".venv-ms-old", "the earlier tool")


@pytest.fixture(scope="session")
def programs() -> Path:
    """The directory of the programs that call PrecisionDebugger, which tools/setup.sh deep makes."""
    path = Path(os.environ.get("MSPROBE_PROGRAMS", REPO / "build" / "programs"))
    if (path / "verl").exists():
        return path
    missing(f"there are no programs at {path}; run tools/setup.sh deep, or set MSPROBE_PROGRAMS")
    return None


@pytest.fixture
def plain_path(tmp_path):
    """A directory with no dot on the way, for what others read as a file of kernels or write to: `tmp_path` unless that has one."""
    if re.fullmatch(r"[A-Za-z0-9_/-]*", str(tmp_path)):
        yield tmp_path
        return
    directory = tempfile.mkdtemp(prefix="msprobe_tests", dir="/tmp")  # letters, digits and _ follow
    yield Path(directory)
    shutil.rmtree(directory)


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

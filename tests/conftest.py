"""For all Python tests: shared fixtures, the tiers, and how long each test took."""

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
from tiers import CHOSEN, is_chosen, is_deep, unmatched

TESTS = REPO / "tests"
TIMES = REPO / "out" / "test_times.json"


def pytest_configure(config):
    config.addinivalue_line("markers", "deep: part of `make test-all`, not of `make test`")
    config.addinivalue_line(
        "markers", "chosen: of the deep ones, those of `make test-ci`; given by tests/tiers.py alone"
    )


def pytest_ignore_collect(collection_path, config):
    """A tier does not even import what only another one needs."""
    if collection_path.suffix != ".py" or TESTS not in collection_path.parents:
        return None
    path = collection_path.relative_to(TESTS).as_posix()
    ignored = {"not deep": is_deep(path), "chosen": path not in CHOSEN}
    return ignored.get(config.option.markexpr) or None


def _times():
    try:
        return json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}


def _mark_tiers(items, config):
    """Marks what is deep, and of that what is chosen. A choice that no deep test has is an error, unless single tests were named."""
    names = defaultdict(list)
    for item in items:
        path, name = item.path.relative_to(TESTS).as_posix(), item.nodeid.split("::", 1)[1]
        deep = names[path]
        if "old_python" in item.fixturenames or is_deep(path):
            item.add_marker(pytest.mark.deep)
        if item.get_closest_marker("deep"):
            deep.append(name)
            if is_chosen(path, name):
                item.add_marker(pytest.mark.chosen)
    if config.option.markexpr == "chosen" and not any("::" in asked for asked in config.args):
        read = [path for path in CHOSEN if path in names or not (TESTS / path).exists()]
        if lost := [f"{path}: {pattern}" for path in read for pattern in unmatched(path, names[path])]:
            raise pytest.UsageError(f"tests/tiers.py chooses what is not there: {lost}")


def pytest_collection_modifyitems(items, config):
    """Marks the tiers. Files that took longest come first, so that none is alone at the end."""
    _mark_tiers(items, config)
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
        missing(f"{what} is not installed at {path}; run tools/setup.sh all, or set {variable}")
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
def mindone_python() -> Path:
    """The interpreter in whose environment MindSpore, mindone, MindCV and our package are installed."""
    return _interpreter("MSPROBE_MINDONE_PYTHON", ".venv-mindone", "mindone")


@pytest.fixture(scope="session")
def megatron_python() -> Path:
    """The interpreter in whose environment megatron-core and our package are installed."""
    return _interpreter("MSPROBE_MEGATRON_PYTHON", ".venv-megatron", "megatron-core")


@pytest.fixture(scope="session")
def vision_python() -> Path:
    """The same with the transformers whose Qwen2.5-VL the built-in templates name."""
    return _interpreter("MSPROBE_VISION_PYTHON", ".venv-vision", "megatron-core with transformers 4.49")


@pytest.fixture(scope="session")
def stacks_python() -> Path:
    """The interpreter in whose environment Accelerate, Lightning, DeepSpeed and our package are installed."""
    return _interpreter("MSPROBE_STACKS_PYTHON", ".venv-stacks", "Accelerate with Lightning and DeepSpeed")


@pytest.fixture(scope="session")
def llamafactory_python() -> Path:
    """The interpreter in whose environment LLaMA-Factory, with the transformers that it asks for, and our package are installed."""
    return _interpreter("MSPROBE_LLAMAFACTORY_PYTHON", ".venv-llamafactory", "LLaMA-Factory")


@pytest.fixture(scope="session")
def trl_python() -> Path:
    """The interpreter in whose environment TRL and our package are installed."""
    return _interpreter("MSPROBE_TRL_PYTHON", ".venv-trl", "TRL")


@pytest.fixture(scope="session")
def titan_python() -> Path:
    """The interpreter in whose environment torchtitan and our package are installed."""
    return _interpreter("MSPROBE_TITAN_PYTHON", ".venv-titan", "torchtitan")


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The interpreter in whose environment vLLM for CPUs and our package are installed."""
    return _interpreter("MSPROBE_VLLM_PYTHON", ".venv-vllm", "vLLM")


@pytest.fixture(scope="session")
def mmengine_python() -> Path:
    """The interpreter in whose environment mmengine and our package are installed."""
    return _interpreter("MSPROBE_MMENGINE_PYTHON", ".venv-mmengine", "mmengine")


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

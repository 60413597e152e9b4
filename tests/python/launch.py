"""Where things are, and how a script runs: in a fork of a warm interpreter, or in an interpreter of its own."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from warm import run_warm

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


# What nearly every script begins by importing, and what the first step of an optimizer imports.
WARM = ("torch", "numpy", "torch._dynamo")
# The earlier tool's own imports take as long again.
WARM_EARLIER = (*WARM, "pandas", "msprobe.pytorch")
# It has one thread until it first computes, and reads the level of its log when it is imported.
WARM_MINDSPORE = ("mindspore",)
_GLOG = {"GLOG_v": "4"}
# These decide how an interpreter starts, so a script that is to have others gets an interpreter of its own.
_AT_START = ("PYTHON", "LD_", "OMP_", "MALLOC_", "TORCH", "KMP_")
# torch sets this itself when its compiler is imported, as some tests do.
_SET_BY_TORCH = {"TORCHINDUCTOR_CACHE_DIR"}
_GIVEN = dict(os.environ)
# What every script has unless a test says otherwise.
STARTED = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def starts_otherwise(environment):
    """The names of the variables for which a script needs an interpreter of its own."""
    names = {name for name in {**environment, **_GIVEN, **STARTED} if name.startswith(_AT_START)} - _SET_BY_TORCH
    given = {**_GIVEN, **STARTED}
    return sorted(name for name in names if environment.get(name) != given.get(name))


def run_python(
    args, *, python=sys.executable, cwd=None, env=None, timeout=300, ours=True, check=True, fresh=False, warm=None
) -> Script:
    """Runs `python *args`; with `ours`, our package and the shared test code can be imported.

    A script runs in a fork of an interpreter that has imported the modules `warm`, unless it is to have a `fresh` one: as it
    has to where the start of an interpreter, the order of imports, a signal or the bottom of the call stack matters.
    """
    paths = [str(HERE), str(PACKAGE_ROOT)] if ours else [str(HERE)]
    asked = {**os.environ, **STARTED, **(env or {})}
    environment = {**asked, "PYTHONPATH": os.pathsep.join(paths)}
    arguments, warnings = [*map(str, args)], []
    while arguments[0] == "-W":
        warnings.append(arguments[1])
        arguments = arguments[2:]
    otherwise = starts_otherwise(asked)
    if fresh or arguments[0].startswith("-") or otherwise not in ([], ["LD_PRELOAD"]):
        done = subprocess.run(
            [str(python), *map(str, args)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout
        )
        result = Script(done.returncode, done.stdout, done.stderr)
    else:
        options = {"warnings": warnings, "cwd": cwd, "env": environment, "timeout": timeout}
        modules = warm or (WARM if str(python) == sys.executable else WARM_EARLIER)
        # What is loaded ahead is asked for by several tests, so there is a warm interpreter for that as well.
        server_env = {**_GIVEN, **STARTED, **_GLOG, **{name: asked[name] for name in otherwise}, "PYTHONPATH": ""}
        result = Script(*run_warm(python, modules, arguments, server_env=server_env, **options))
    if check:
        assert result.returncode == 0, (
            f"exit code {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-6000:]}"
        )
    return result


def run_mindspore(command, **options):
    """Runs [python, script or -c source, *args] as run_python() does, in a fork of one that has imported MindSpore."""
    python, *args = command
    with tempfile.TemporaryDirectory() as directory:
        if args[0] == "-c":  # the compiler of MindSpore reads the source, so it needs a file anyway
            path = Path(directory) / "script.py"
            path.write_text(args[1], encoding="utf-8")
            args[:2] = [path]
        return run_python(args, python=python, ours=False, check=False, warm=WARM_MINDSPORE, **options)

"""The environment: mindstudio-probe in the same directory, the command of this installation, the language of the locale."""

import os
import shutil
import sys
import sysconfig
from typing import Optional

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_OTHER = "mindstudio-probe"


def clash() -> str:
    """Explains why this installation cannot work; empty if it can.

    Both distributions own the package msprobe, and installing one over the other mixes their files. The other one
    elsewhere on sys.path does no harm.
    """
    try:
        beside = os.listdir(os.path.dirname(_PACKAGE))
    except OSError:
        return ""
    if not any(name.startswith("mindstudio_probe-") and name.endswith((".dist-info", ".egg-info")) for name in beside):
        return ""
    return (
        f"msprobe and {_OTHER} are both installed in {os.path.dirname(_PACKAGE)} and have overwritten each other's files: "
        f"{'msprobe' if _is_active() else _OTHER} was installed last and is what the command and `import msprobe` are. To keep "
        f"msprobe, run `{sys.executable} -m pip uninstall {_OTHER}`, which takes files of both along, and then install msprobe "
        f"again with --force-reinstall; to keep {_OTHER}, the other way round; or use an environment of its own for each"
    )


def _is_active() -> bool:
    """Tells whether the package is ours: of the file that both have, the one that was installed last is there."""
    try:
        with open(os.path.join(_PACKAGE, "__init__.py"), encoding="utf-8") as file:
            return "from ._environment import clash" in file.read()
    except OSError:
        return False


def without_lock() -> str:
    """Explains why nothing is recorded where threads of the interpreter run at once; empty if they do not."""
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        return ""
    return (
        f"msprobe records only under the lock of the interpreter, which {sys.executable} runs without: set PYTHON_GIL=1, or use "
        "a Python that is not free-threaded"
    )


def find_command() -> Optional[str]:
    """Finds the msprobe program of this installation, or else the one beside the interpreter or on PATH."""
    # site-packages is lib/pythonX.Y/site-packages below the prefix, whatever the scheme (venv, --user, --prefix).
    prefix = os.path.abspath(os.path.join(_PACKAGE, *[os.pardir] * 4))
    places = [
        os.path.join(prefix, "bin"),
        os.path.join(os.path.dirname(_PACKAGE), "bin"),  # pip install --target
        sysconfig.get_path("scripts"),
    ]
    for place in places:
        found = os.path.join(place, "msprobe")
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return shutil.which("msprobe")


def is_chinese() -> bool:
    """Tells whether messages should be Chinese. As in POSIX, the first of these variables that is set decides."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return os.environ[name].lower().startswith("zh")
    return False

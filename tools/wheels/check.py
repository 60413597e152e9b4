"""What a wheel promises: the hosts it loads on by its symbols, all extensions in it, and that what is in it works. A wheel for
another processor runs under qemu where that is installed, and has to answer as the one of this machine, byte by byte.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from sources import WheelError, run

ROOT = Path(__file__).resolve().parents[2]
OLDEST = (2, 28)
# Of the C library, which manylinux has everywhere; all else is linked in.
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")
# Debian's package libc6-arm64-cross lays the C library of the other processor there.
QEMU = {"aarch64": ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu")}


def glibc_of(path):
    """The newest version of glibc that a program or module asks for."""
    asked = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "-WV", path))
    return max(((int(major), int(minor)) for major, minor in asked), default=(0, 0))


def libraries_of(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-Wd", path))


def loads_everywhere(path):
    newest = glibc_of(path)
    if newest > OLDEST:
        raise WheelError(f"{path.name} asks for glibc {newest[0]}.{newest[1]}: more than {OLDEST[0]}.{OLDEST[1]}")
    for library in libraries_of(path):
        if not SYSTEM.fullmatch(library):
            raise WheelError(f"{path.name} needs {library}, which is not linked in")
    if re.search(r"\((RPATH|RUNPATH)\)", run("readelf", "-Wd", path)):
        raise WheelError(f"{path.name} looks for libraries in folders of the machine that made it")
    shown = run("readelf", "-W", "--dyn-syms", path)
    # Others in the process would see them; unwinding must stay that of whoever threw.
    visible = re.findall(r"(?:GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+\d+\s+(\w+)$", shown, re.MULTILINE)
    shared = [name for name in visible if not name.startswith("PyInit_")]
    if shared and path.suffix == ".so":
        raise WheelError(f"{path.name} shows {shared[:5]} to the whole process")


def tag_by_auditwheel(wheel):
    shown = run(sys.executable, "-m", "auditwheel", "show", wheel)
    found = re.search(r'platform tag:\s+"manylinux_(\d+)_(\d+)_', shown)
    if not found or (int(found[1]), int(found[2])) > OLDEST:
        raise WheelError(f"auditwheel does not call {wheel.name} manylinux_2_28:\n{shown}")
    return found[0]


def unpacked(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (command,) = Path(folder).glob("*.data/scripts/msprobe")
    command.chmod(0o755)
    return command


def members(path, into):
    """What a result says, whenever and wherever it was written: of a workbook its parts."""
    if path.suffix != ".xlsx":
        return re.sub("20[0-9]{12}", "TIME", path.read_text().replace(str(into), "OUT"))
    with zipfile.ZipFile(path) as book:
        return {name: book.read(name) for name in book.namelist() if not name.startswith("docProps/")}


def answers(command, folder):
    """What the command makes of small dumps, by the name of the result; it has no environment at all."""
    out = {}
    for options in sorted((ROOT / "tests/golden/compare").glob("*/options.json")):
        case, asked = options.parent, json.loads(options.read_text())
        into = Path(folder) / case.name
        both = [word for side in ("target", "golden") for word in (f"-{side[0]}p", case / side / asked["file"])]
        words = ["env", "-i", *command, "compare", *both, "-o", into, *asked["options"]]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        # Some of the dumps are not whole, which the code says.
        out[f"{case.name}: exit code"] = done.returncode
        if done.returncode < 0 or not any(into.glob("*")):
            raise WheelError(f"the command made nothing of {case.name}: {done.stderr}")
        for path in sorted(into.rglob("*")):
            if path.is_file():
                out[f"{case.name}/{re.sub('20[0-9]{12}', 'TIME', path.name)}"] = members(path, into)
    if not any(name.endswith(".xlsx") for name in out) or not any(name.endswith(".csv") for name in out):
        raise WheelError(f"the command wrote no table: {sorted(out)}")
    return out


def installs(wheel, python, folder):
    """Into a new environment without an index: package, extensions and command."""
    run(python, "-m", "venv", folder)
    inside = Path(folder) / "bin"
    run(inside / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel)
    # Elsewhere than the checkout, whose package would be imported.
    run(inside / "python", "-c", "import msprobe, msprobe._core, msprobe._page", cwd=folder)
    run("env", "-i", inside / "msprobe", "--version")


def wheel(path, versions, interpreter):
    """Raises WheelError unless it keeps its promises. Returns what the command answered, None where it cannot run here."""
    arch = re.search(r"_(x86_64|aarch64)\.whl", path.name)[1]
    tag_by_auditwheel(path)
    with tempfile.TemporaryDirectory() as scratch:
        command = unpacked(path, f"{scratch}/files")
        modules = sorted(Path(scratch, "files", "msprobe").glob("*.so"))
        names = {
            f"{name}.cpython-{v.replace('.', '')}-{arch}-linux-gnu.so" for v in versions for name in ("_core", "_page")
        }
        if names != {module.name for module in modules}:
            raise WheelError(f"{path.name} has {[module.name for module in modules]}, not {sorted(names)}")
        for binary in (command, *modules):
            loads_everywhere(binary)
        if arch == os.uname().machine:
            for version in {versions[0], versions[-1]}:
                installs(path, interpreter(version)[0], f"{scratch}/{version}")
            return answers([command], f"{scratch}/out")
        emulator = QEMU.get(arch)
        if emulator and shutil.which(emulator[0]) and Path(emulator[2]).exists():
            return answers([shutil.which(emulator[0]), *emulator[1:], command], f"{scratch}/out")
    return None


def all_agree(found):
    """The answers of two processors are the same; `found`: by the wheel's name."""
    known = {name: answer for name, answer in found.items() if answer is not None}
    first, *others = known.items()
    for name, answer in others:
        for result in sorted({*first[1], *answer}):
            if first[1].get(result) != answer.get(result):
                raise WheelError(f"{result}: {name} does not answer as {first[0]}")


def check_source_archive(path):
    """The source archive builds without Node: both pages are in it."""
    listed = subprocess.run(["tar", "-tzf", str(path)], capture_output=True, text=True, check=True).stdout
    for page in ("index.html", "report.html"):
        if f"/web/dist/{page}\n" not in listed:
            raise WheelError(f"{path.name} lacks web/dist/{page}")

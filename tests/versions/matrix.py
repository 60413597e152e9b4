#!/usr/bin/env python3
"""Runs pair.py for pairs of Python and PyTorch, and the tests of MindSpore for its releases. Prints the table of docs/testing.md.

usage: matrix.py [--keep] [--no-mindspore] [PYTHON:TORCH ...]

Each pair gets an environment of 1.3 to 1.8 GB, which is removed after it. Pythons are searched as $MSPROBE_PYTHONS/*/bin/python3.N,
below ~/.pyenv/versions, and on PATH; a pair whose Python or PyTorch is not to be had is left out, with a line.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
OUT = REPO / "out" / "versions"
REFERENCE = ("3.11", "2.13.0")
PAIRS = ("3.9:2.0.1", "3.10:2.2.2", "3.9:2.4.1", "3.11:2.6.0", "3.12:2.8.0", "3.13:2.15.0", "3.14:2.15.0")
MINDSPORE = ("2.7.1", "2.8.0", "2.9.0")
MINDSPORE_TESTS = (
    *("test_capture.py", "test_training_is_unchanged.py", "test_late_reading.py", "test_releases.py"),
    *("test_run.py", "test_save.py", "test_trainer_mon.py", "test_optimizer_record.py"),
)
ROOM = 15 << 30  # that stays free
# What PyTorch imports and is not its libraries for CUDA.
BESIDE = ("typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock", "setuptools")


class LeftOut(Exception):
    """A pair cannot be had here."""


def pythons(version):
    roots = [Path(p) for p in os.environ.get("MSPROBE_PYTHONS", "").split(os.pathsep) if p]
    for root in [*roots, Path.home() / ".pyenv" / "versions"]:
        yield from root.glob(f"*/bin/python{version}")
    if found := shutil.which(f"python{version}"):
        yield Path(found)


def python_of(version):
    for python in pythons(version):
        done = subprocess.run([python, "-c", "import venv, sys; print(sys.version)"], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.startswith(f"{version}."):
            return python
    raise LeftOut(f"there is no Python {version}")


def call(log, *command, **options):
    with open(log, "ab") as stream:
        done = subprocess.run([*map(str, command)], stdout=stream, stderr=subprocess.STDOUT, check=False, **options)
    return done.returncode


def wheel_of(version, python):
    """Builds the product for this Python. The build folder lies as deep as all others, so that the cache of objects is hit."""
    tag = "cp" + version.replace(".", "")
    folder = REPO / "build" / f"wheels-{tag}"
    shutil.rmtree(folder, ignore_errors=True)
    settings = [f"--config-settings=build-dir=build/{tag}", "--no-deps", "-q", "--disable-pip-version-check"]
    environment = {**os.environ, "CC": "gcc", "CXX": "g++", "CMAKE_BUILD_PARALLEL_LEVEL": "2"}
    log = OUT / f"wheel-{tag}.log"
    if call(log, python, "-m", "pip", "wheel", *settings, "-w", folder, ".", cwd=REPO, env=environment):
        raise RuntimeError(f"the product does not build for Python {version}: see {log}")
    return next(folder.glob("*.whl"))


def environment_of(version, packages, log):
    """A new environment with these lists of packages, each a call of pip."""
    if shutil.disk_usage(OUT).free < ROOM:
        raise LeftOut("there is too little room on the disk")
    place = OUT / "env"
    shutil.rmtree(place, ignore_errors=True)
    if call(log, python_of(version), "-m", "venv", place):
        raise LeftOut(f"no environment of Python {version} could be made: see {log}")
    python = place / "bin" / "python"
    for arguments in packages:
        if call(log, python, "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check", *arguments):
            raise LeftOut(f"pip finds no {' '.join(map(str, arguments))}: see {log}")
    return python


def run_pair(version, torch):
    place = OUT / f"{version}_{torch}"
    place.mkdir(parents=True, exist_ok=True)
    log = place / "setup.log"
    numpy = "numpy<2" if torch.startswith(("2.0.", "2.1.", "2.2.")) else "numpy"
    wheel = wheel_of(version, python_of(version))
    python = environment_of(version, [["--no-deps", f"torch=={torch}"], [numpy, *BESIDE], ["--no-deps", wheel]], log)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    if call(log, sys.executable, HERE / "stand_in_libraries.py", site.stdout.strip()):
        raise RuntimeError(f"no stand-ins for the libraries of CUDA: see {log}")
    reference = OUT / "_".join(REFERENCE)
    given = [] if (version, torch) == REFERENCE else ["--reference", reference]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([python, HERE / "pair.py", place, *given], check=False, env={**os.environ, "PATH": path})
    return json.loads((place / "results.json").read_text())


def run_mindspore(release):
    place = OUT / f"mindspore_{release}"
    place.mkdir(parents=True, exist_ok=True)
    log = place / "tests.log"
    log.unlink(missing_ok=True)
    wheel = wheel_of("3.11", python_of("3.11"))
    packages = [[f"mindspore=={release}", "numpy<2"], ["--no-deps", wheel]]
    python = environment_of("3.11", packages, place / "setup.log")
    for unused in python.parents[1].glob("lib/python3*/site-packages/mindspore/lib/plugin/*gpu*"):
        shutil.rmtree(unused) if unused.is_dir() else unused.unlink()
    tests = [f"tests/mindspore/{name}" for name in MINDSPORE_TESTS]
    environment = {**os.environ, "MSPROBE_MINDSPORE_PYTHON": str(python)}
    call(log, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=REPO, env=environment)
    return log.read_text(errors="replace").strip().splitlines()[-1].strip("= ")


def table(results):
    checks = list(dict.fromkeys(check for result in results for check in result["checks"]))
    lines = ["| | " + " | ".join(f"{r['python']} + {r['torch'].split('+')[0]}" for r in results) + " |"]
    lines.append("|---" * (len(results) + 1) + "|")
    for check in checks:
        cells = []
        for result in results:
            found = result["checks"].get(check, {"passed": None, "said": "not run"})
            words = {True: "ok", False: "**fails**: ", None: ""}[found["passed"]]
            cells.append(f"{words} {found['said'].strip()}".strip())
        lines.append(f"| {check} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="*", default=[])
    parser.add_argument("--keep", action="store_true", help="leave the last environment")
    parser.add_argument("--no-mindspore", action="store_true")
    asked = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    results, failed = [], False
    for pair in [":".join(REFERENCE), *(asked.pairs or PAIRS)]:
        began = time.monotonic()
        print(f"== {pair}", flush=True)
        try:
            results.append(run_pair(*pair.split(":")))
            failed |= not all(check["passed"] for check in results[-1]["checks"].values())
        except LeftOut as why:
            print(f"left out: {why}")
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    print("\n" + table(results) + "\n")
    for release in () if asked.no_mindspore else MINDSPORE:
        try:
            said = run_mindspore(release)
            failed |= " failed" in said or " passed" not in said
        except LeftOut as why:
            said = f"left out: {why}"
        print(f"MindSpore {release}: {said}", flush=True)
    if not asked.keep:
        shutil.rmtree(OUT / "env", ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

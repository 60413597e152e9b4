"""What makes wheels and source archives: pins that agree, a record that is right, and a folder that is nobody else's."""

import csv
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest
from launch import REPO

sys.path.insert(0, str(REPO / "tools" / "wheels"))

import check
import pack
import sources

PROJECT = (REPO / "pyproject.toml").read_text()


def test_pip_builds_in_a_folder_of_its_own():
    """The folder of a preset belongs to the Python of the checkout; pip gives its own Python to the one it builds in."""
    folder = re.search(r'^build-dir = "(.*)"', PROJECT, re.MULTILINE)[1]
    presets = json.loads((REPO / "CMakePresets.json").read_text())["configurePresets"]
    assert folder not in {f"build/{preset['name']}" for preset in presets}
    assert re.fullmatch(r"build/[^/]*\{cache_tag\}", folder), "as deep as the presets, and one for each Python"
    assert "--config-settings build-dir=build/release" in (REPO / "tools" / "setup.sh").read_text()


def test_every_python_that_is_promised_is_in_a_wheel():
    pythons = re.findall(r"Python :: (3\.\d+)", PROJECT)
    assert sorted(sources.PINS["nanobind"]) == sorted(pythons)
    least, most = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', PROJECT).groups()
    assert pythons == [f"3.{minor}" for minor in range(int(least), int(most))]


def test_pins_are_whole():
    for name, pin in sources.PINS["debian"].items():
        assert re.fullmatch(r"[0-9a-f]{64}", pin["sha256"]), name
        assert pin["version"] and pin["licence"]
    settings = (REPO / "tools/wheels/archives/CMakeLists.txt").read_text()
    assert {name for name in sources.PINS["debian"] if f"${{in}}/{name}" in settings} == set(sources.PINS["debian"])


def test_an_other_description_is_refused(tmp_path):
    (tmp_path / "expat.dsc").write_text("of somebody else\n")
    with pytest.raises(sources.WheelError, match="checksum"):
        sources.check_pin("expat", tmp_path / "expat.dsc")


def test_the_record_of_a_wheel(tmp_path):
    info, path = "toy-1.dist-info", tmp_path / "toy.whl"
    files = {
        "toy/a.py": b"x = 1\n",
        "toy/_c.so": b"\x7fELF",
        "toy-1.data/scripts/toy": b"#!",
        f"{info}/WHEEL": b"Tag: py3-none-any\n",
    }
    pack.write(path, info, files, (2026, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(path) as wheel:
        rows = list(csv.reader(wheel.read(f"{info}/RECORD").decode().splitlines()))
        assert {row[0] for row in rows} == set(wheel.namelist())
        for name, digest, size in rows[:-1]:
            data = wheel.read(name)
            assert len(data) == int(size)
            assert urlsafe_b64decode(digest.removeprefix("sha256=") + "=") == hashlib.sha256(data).digest()
        assert rows[-1] == [f"{info}/RECORD", "", ""]
        runs = {entry.filename for entry in wheel.infolist() if entry.external_attr >> 16 & stat.S_IXUSR}
    assert runs == {"toy/_c.so", "toy-1.data/scripts/toy"}


def test_a_program_of_a_newer_host_is_refused(tmp_path):
    """One that asks for a symbol of the C library of after 2.28, or for a library that few hosts have."""
    (tmp_path / "a.c").write_text('#include <stdlib.h>\nint main(void) { return (int)strtol(getenv("X"), 0, 10); }\n')
    program = tmp_path / "program"
    subprocess.run(["cc", tmp_path / "a.c", "-o", program], check=True)
    newest = check.glibc_of(program)
    assert newest > (2, 0)
    if newest > check.OLDEST:
        with pytest.raises(sources.WheelError, match=r"asks for glibc 2\.\d+"):
            check.loads_everywhere(program)
    assert all(check.SYSTEM.fullmatch(name) for name in check.libraries_of(program))
    assert not check.SYSTEM.fullmatch("libxlsxwriter.so.4") and not check.SYSTEM.fullmatch("libstdc++.so.6")


def test_answers_that_differ_are_named():
    check.all_agree({"a": {"x.csv": b"1"}, "b": {"x.csv": b"1"}, "not run": None})
    with pytest.raises(sources.WheelError, match=r"x\.csv: b does not answer as a"):
        check.all_agree({"a": {"x.csv": b"1"}, "b": {"x.csv": b"2"}})


@pytest.mark.skipif(
    os.environ.get("CI") != "true" and not (REPO / "web/dist/index.html").exists(), reason="the pages are not built"
)
def test_the_source_archive_has_the_pages(tmp_path):
    pytest.importorskip("scikit_build_core")
    path = pack.source_archive(tmp_path)
    check.check_source_archive(path)
    names = subprocess.run(["tar", "-tzf", path], capture_output=True, text=True, check=True).stdout.splitlines()
    inside = {Path(name).parts[1] for name in names}
    assert inside >= {
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "cmake",
        "include",
        "pyproject.toml",
        "python",
        "src",
        "web",
    }
    assert not inside & {"tests", "docs", "bench"} and not any("/web/src/" in name for name in names)

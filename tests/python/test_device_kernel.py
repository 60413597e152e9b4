"""The text of the kernel for devices is what clang makes of the sources, and assembles; no device is needed."""

import importlib.util
import os
import re
import shutil

import pytest
from launch import HERE

ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def ptx():
    spec = importlib.util.spec_from_file_location("ptx", ROOT / "tools" / "ptx.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_text_is_that_of_the_sources(ptx):
    text = ptx.TEXT.read_text()
    if ptx.release_of("clang++") != ptx.made_by(text):
        pytest.skip(f"clang {ptx.made_by(text)} is not here")
    assert ptx.generate("clang++") == text


def test_no_product_is_fused_and_no_number_flushed(ptx):
    arithmetic = set(re.findall(r"\b(?:add|sub|mul|fma|mad|div|sqrt)\S*\.f(?:32|64)\b", ptx.TEXT.read_text()))
    assert "add.rn.f64" in arithmetic and "mul.rn.f64" in arithmetic
    assert all(re.fullmatch(r"(add|sub|mul|div|sqrt)\.rn\.f(32|64)", name) for name in arithmetic)


def test_the_argument_is_not_copied(ptx):
    """A copy of all of it in the memory of each lane would take longer than the sums."""
    sizes = [int(size) for size in re.findall(r"\.local \.align \d+ \.b8 \S+\[(\d+)\]", ptx.TEXT.read_text())]
    assert all(size <= 64 for size in sizes)


def test_it_assembles_for_three_architectures(ptx, capsys):
    ptxas = os.environ.get("MSPROBE_TEST_PTXAS") or shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas: MSPROBE_TEST_PTXAS names one, that of the package nvidia-cuda-nvcc-cu12")
    release = ptx.ptxas_release_of(ptxas)
    wanted = ptx.ARCHITECTURES if release < 13 else ("sm_75", *ptx.ARCHITECTURES[1:])
    ptx.assemble(ptxas, wanted)
    assert capsys.readouterr().out.count("bytes") == 3

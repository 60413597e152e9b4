"""The figures of each dtype that torch has, and that no table of the product says otherwise."""

import re
from pathlib import Path

import pytest
import torch
from msprobe._core import dtype_figures

ROOT = Path(__file__).resolve().parents[2]
DTYPES = sorted({d for d in vars(torch).values() if isinstance(d, torch.dtype)}, key=str)
# Parts of a byte, packed pairs and quantised numbers are read as bytes: they have no numbers of their own.
NO_NUMBERS = re.compile(r"torch\.(q|bits|u?int[1-7]$|float4)")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_dtype_of_torch_has_its_figures(dtype):
    found = dtype_figures(str(dtype))
    if NO_NUMBERS.match(str(dtype)):
        assert found is None
        return
    kind, bits, eps, smallest, largest, lowest = found
    assert bits == 8 * dtype.itemsize
    if dtype.is_floating_point or dtype.is_complex:
        info = torch.finfo(dtype)
        assert kind == ("complex" if dtype.is_complex else "float")
        # Of this type torch gives half the distance from 1 to its neighbour, 1.25.
        told = 2 * info.eps if dtype == torch.float8_e5m2fnuz else info.eps
        assert (eps, smallest, largest) == (told, info.smallest_normal, info.max)
        # torch says -max of a type without a sign.
        assert lowest == (2.0**-127 if dtype == torch.float8_e8m0fnu else info.min)
    elif dtype == torch.bool:
        assert (kind, eps, lowest, largest) == ("bool", 0, 0, 1)
    else:
        info = torch.iinfo(dtype)
        assert (kind, eps, lowest, largest) == ("integer", 0, float(info.min), float(info.max))


def test_what_is_no_dtype_has_none():
    assert dtype_figures("torch.Size") is None and dtype_figures("") is None


def test_tables_of_programs_that_have_no_core_say_the_same():
    """What runs in an interpreter without the package has names of MindSpore, as Float32."""
    program = (ROOT / "python/msprobe/_lab_mindspore.py").read_text()
    tables = {}
    import numpy as np

    for name in ("EPS", "LARGEST", "SMALLEST"):
        text = re.search(rf"^{name} = (\{{.*?\}})", program, re.S | re.M).group(1)
        tables[name] = eval(text, {"np": np})
    script = (ROOT / "src/lab/scripts/mindspore_script.cc").read_text()
    for name in ("FLOATS", "SMALLEST", "LARGEST"):
        tables["script " + name] = eval(re.search(rf"^{name} = (\{{.*?\}})", script, re.M).group(1))
    for dtype in ("Float64", "Float32", "Float16", "BFloat16"):
        _, _, eps, smallest, largest, _ = dtype_figures(dtype)
        assert tables["EPS"][dtype] == eps == 2.0 ** tables["script FLOATS"][dtype]
        assert tables["SMALLEST"][dtype] == smallest == tables["script SMALLEST"][dtype]
        # A range for random values, which ends just below.
        assert 0.999 * largest <= tables["LARGEST"][dtype] <= largest
        assert 0.999 * largest <= tables["script LARGEST"][dtype] <= largest


def test_the_figures_stand_once():
    """Numbers of a dtype in C++ stand in finfo.h; what a standard or a test says is its own."""
    figures = re.compile(r"\b(65504|3\.38953\d*e\+?38|3\.40282\d*e\+?38|0x1\.fep127|57344)\b")
    said = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.*")
        if path.suffix in (".cc", ".h") and "_test" not in path.name and "_bench" not in path.name
        if any(figures.search(line.split("//")[0]) for line in path.read_text().splitlines())
    }
    assert said <= {"src/tensor/kernels/finfo.h", "src/view/run/step_bins.h", "src/lab/scripts/mindspore_script.cc"}

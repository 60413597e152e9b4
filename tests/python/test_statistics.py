"""Statistics and checksums of tensors of every type and layout against PyTorch in double precision and zlib."""

import json
import math
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe import _core
from msprobe.pytorch import device_stats, odd_values

FLOATS = "float32 float64 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
COMPLEX = "complex32 complex64 complex128"
DTYPES = [getattr(torch, name) for name in f"{FLOATS} {INTEGERS} {COMPLEX} bool".split()]


@pytest.fixture(scope="module", params=["direct", "deferred"], autouse=True)
def path(request):
    """Of host memory, and by the kernels that a device would run."""
    values = device_stats.DeviceValues()
    _core.init("torch", torch, odd_values.describe, odd_values.describe_tensor, "")
    _core.set_deferral(values.defer, values.fetch, request.param == "deferred")
    yield request.param
    _core.set_deferral(values.defer, values.fetch, False)


@st.composite
def tensors(draw):
    """Any bits as elements, in any layout."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 7), max_size=4))
    count = math.prod(shape)
    size = torch.empty(0, dtype=dtype).element_size()
    data = draw(st.binary(min_size=count * size, max_size=count * size))
    if dtype is torch.bool:
        data = bytes(b & 1 for b in data)
    x = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype) if data else torch.empty(0, dtype=dtype)
    x = x.reshape(shape)
    if draw(st.booleans()) and x.dim():
        x = x.permute(draw(st.permutations(range(x.dim()))))
    if draw(st.booleans()) and x.dim():
        dim = draw(st.integers(0, x.dim() - 1))
        x = x[(slice(None),) * dim + (slice(None, None, draw(st.integers(1, 3))),)]
    if draw(st.booleans()):
        x = x[None].expand(draw(st.integers(1, 4)), *x.shape)
    return x


def statistics_of(x):
    item = json.loads(_core.value_json("x", x))
    return [item[key] for key in ("Max", "Min", "Mean", "Norm")] + [item.get("md5")]


def wide(x):
    if x.dtype.is_complex:
        return x.to(torch.complex128).abs()
    return x.to(torch.float64)


def same(found, expected, tolerance):
    if math.isnan(expected) or math.isinf(expected):
        return math.isnan(found) if math.isnan(expected) else found == expected
    return abs(found - expected) <= tolerance


@settings(max_examples=400, deadline=None)
@given(tensors())
def test_every_type_and_layout(x):
    most, least, mean, norm, _ = statistics_of(x)
    if x.numel() == 0:
        assert (most, least, mean, norm) == (None,) * 4
        return
    plain = x.contiguous().reshape(-1)
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        elements = plain.tolist()  # exact
        assert (most, least) == (max(elements), min(elements))
        assert type(most) is (bool if x.dtype is torch.bool else int)
    values = wide(plain)
    if x.dtype is torch.bool:
        assert mean is None and norm is None
        return
    any_nan = bool(values.isnan().any())
    if x.dtype.is_floating_point:
        assert same(most, values.max().item(), 0) and same(least, values.min().item(), 0)
    elif x.dtype.is_complex:
        # At the edge of its range the absolute value is rounded to the type of the parts.
        assert same(most, values.max().item(), 1e-6 * values.max().item())
    if x.dim() == 0 and not x.dtype.is_complex:
        assert all(same(float(value), float(most), 0) for value in (mean, norm))
        return
    if any_nan:
        assert math.isnan(mean) and math.isnan(norm)
        return
    largest = values.abs().max().item()
    # Squares may leave the range of double at both ends: the reference is scaled, as ours is.
    wanted = (values / largest).norm().item() * largest if 0 < largest < math.inf else values.norm().item()
    assert same(norm, wanted, 1e-6 * wanted)
    if largest <= 1e150:
        assert same(mean, values.mean().item(), 1e-6 * largest)


@settings(max_examples=100, deadline=None)
@given(tensors())
def test_checksums(x):
    _core.configure("L1", False, "md5", False, ["all"], [], [], "FOCUS")
    try:
        crc = statistics_of(x)[4]
    finally:
        _core.configure("L1", False, "statistics", False, ["all"], [], [], "FOCUS")
    # A single element is contiguous with any stride, and view() refuses it.
    data = x.contiguous().reshape(-1).as_strided((x.numel(),), (1,)).view(torch.uint8)
    assert crc == f"{zlib.crc32(bytes(data.tolist())):08x}"


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("values", [(7e-304, 7e-304), (3e200, -4e200), (5e-324, 0.0), (1.7e308, 0.0), (0.0, 0.0)])
def test_norms_whose_squares_leave_the_range(values, dtype):
    norm = statistics_of(torch.tensor(values, dtype=dtype))[3]
    assert norm == pytest.approx(math.hypot(*values), rel=1e-12)


def test_norms_of_what_is_not_finite():
    assert statistics_of(torch.tensor([math.inf, 1.0], dtype=torch.float64))[3] == math.inf
    assert math.isnan(statistics_of(torch.tensor([math.nan, 1.0], dtype=torch.float64))[3])

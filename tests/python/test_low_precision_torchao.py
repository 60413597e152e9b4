"""fake_quantize against the codecs of torchao, a second witness for MX and NVFP4; it runs where torchao is installed."""

import pytest
import torch
from msprobe.pytorch import fake_quantize

mx = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")
nvfp4 = pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor")
ELEMENTS = {
    "mxfp8": torch.float8_e4m3fn,
    "mxfp8_e5m2": torch.float8_e5m2,
    "mxfp4": torch.float4_e2m1fn_x2,
}


def blocks(seed, dtype):
    """Random rows, the magnitudes of whose blocks differ by up to 2^24."""
    draws = torch.Generator().manual_seed(seed)
    scale = torch.exp2(torch.randint(-12, 13, (64, 8, 1), generator=draws).float())
    return (torch.randn(64, 8, 32, generator=draws) * scale).reshape(64, 256).to(dtype)


def assert_same(got, want):
    differ = (got.float() != want.float()).nonzero()
    assert len(differ) == 0, f"{len(differ)} of {got.numel()} differ, first at {differ[0].tolist()}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", ELEMENTS)
def test_mx_is_that_of_torchao(name, dtype):
    for seed in range(8):
        x = blocks(seed, dtype)
        scale, stored = mx.to_mx(x, ELEMENTS[name], 32)
        want = mx.to_dtype(stored, scale, ELEMENTS[name], 32, torch.float32)
        assert_same(fake_quantize(x.float(), name), want)


def test_nvfp4_is_that_of_torchao():
    for seed in range(8):
        x = blocks(seed, torch.float32)
        of_tensor = nvfp4.per_tensor_amax_to_scale(x.abs().max())
        scales, stored = nvfp4.nvfp4_quantize(x, 16, of_tensor)
        numbers = nvfp4.f4_unpacked_to_f32(nvfp4.unpack_uint4(stored)).reshape(64, -1, 16)
        want = numbers * (of_tensor * scales.float().reshape(64, -1, 1))
        assert_same(fake_quantize(x, "nvfp4"), want.reshape(64, 256))

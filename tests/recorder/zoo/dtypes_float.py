"""float64, float32, float16, bfloat16 and every fp8, near the ends of their range, with NaN and infinities."""

import torch
from torch import nn

FP8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


class Take(nn.Module):
    def forward(self, *tensors):
        return tensors


def build():
    return nn.Sequential(nn.Linear(2, 2), Take())


def step(model, i):
    base = torch.randn(100, 100)
    plain = [base.to(t) for t in (torch.float64, torch.float32, torch.float16, torch.bfloat16)]
    small = [base.abs().to(getattr(torch, name)) for name in FP8]
    large = [base * 1e38, base * 1e-40, (base * 65000).half(), (base * 1e38).bfloat16(), base.double() * 1e300]
    odd = base.clone()
    odd[3, 5] = float("inf")
    other = odd.clone()
    other[99, 99] = float("nan")
    scalars = [torch.tensor(v) for v in (1.5, float("-inf"), float("nan"))]
    model[1](*plain, *small, *large, odd, other, -odd, *scalars, torch.zeros(0, 3), torch.zeros(3, 3))
    for t in plain:
        torch.add(t, 1)
    return [model(base[:, :2])[0]]

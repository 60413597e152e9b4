"""How far a result is from its reference: figures and limits of mindstudio-probe's benchmark standard."""

from dataclasses import dataclass
from typing import Any, Optional

import torch

# (largest difference, error balance) that passes.
LIMITS = {
    torch.float16: (2**-11, 2**-10),
    torch.bfloat16: (2**-8, 2**-7),
    torch.float32: (2**-14, 2**-14),
    torch.float64: (2**-14, 2**-14),
}
_HALVES = (torch.float16, torch.bfloat16)
_LARGE = 1.0  # of the reference: below it differences are absolute ones
_EPS = torch.finfo(torch.float32).eps

EMPTY = "no elements"
SHAPES = "the result and the reference have different shapes"
ODD_REFERENCE = "the reference has NaN or infinite elements, with which this standard passes any result"
ODD_RESULT = "the result has NaN or infinite elements, the reference has none"
NOT_TENSORS = "the result and the reference are of different kinds"


@dataclass
class Judgement:
    """What the standard says of one result; what it has not computed is None."""

    passes: bool
    message: Optional[str] = None
    error_balance: Any = None
    max_abs: Any = None
    max_abs_index: Optional[int] = None
    max_rel: Any = None
    max_rel_index: Optional[int] = None
    balance_limit: Optional[float] = None
    limit: Optional[float] = None


def judge(ours: torch.Tensor, truth: torch.Tensor) -> Judgement:
    """Compares two tensors of the CPU.

    Args:
        ours: The result.
        truth: The reference, which may have more digits.

    Returns:
        The judgement; indices are those of the flattened result.
    """
    if ours.shape != truth.shape:
        return Judgement(False, SHAPES)
    if not ours.numel():
        return Judgement(True, EMPTY)
    ours, truth = _flat(ours), _flat(truth)
    exact = ours.dtype not in LIMITS
    if exact and ours.is_floating_point():  # of 8 bits, which have hardly any functions
        ours, truth = ours.float(), truth.float()
    if not torch.isfinite(truth).all():
        return Judgement(True, ODD_REFERENCE)
    if not torch.isfinite(ours).all():
        return Judgement(False, ODD_RESULT)
    if exact:
        return Judgement(torch.equal(ours, truth), None, 0, 0, None, 0, None)
    return _of_floats(ours, truth)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.flatten()


def _of_floats(ours: torch.Tensor, truth: torch.Tensor) -> Judgement:
    limit, balance_limit = LIMITS[ours.dtype]
    if ours.dtype in _HALVES and truth.dtype == torch.float32:
        ours = ours.float()
    size, apart = truth.abs(), ours - truth
    large, share = size >= _LARGE, size + _EPS
    balance = float(torch.where(size < _LARGE, apart, apart / share).mean())
    max_abs, max_abs_index = _largest(apart.abs(), large)
    max_rel, max_rel_index = _largest(apart.abs() / share, large)
    passes = not (balance > balance_limit or max_abs > limit or max_rel > limit)
    return Judgement(passes, None, balance, max_abs, max_abs_index, max_rel, max_rel_index, balance_limit, limit)


def _largest(errors: torch.Tensor, of: torch.Tensor) -> tuple[float, Optional[int]]:
    """The largest error of large elements, and where it is."""
    if not of.any():
        return 0.0, None
    errors = torch.where(of, errors, torch.zeros_like(errors))
    at = int(errors.argmax())
    return float(errors[at]), at

"""Whether a result is as near to the truth as the least that rounding explains: a part of the process of acc_check (_replay is there already).

Most results are. No pass in float64 is made for them but the one of the truth.
"""

import math

from _replay import limit_of

torch = None  # set by the process

POWERS = 0x7FF0000000000000  # of the bits of a float64: without the others it is rounded down to a power of two


def near_of(call, ours, truth, low, unit, kind, backward):
    """How near a result is to the truth.

    Args:
        call: The call.
        ours: The result of the device, on the CPU.
        truth: In float64.
        low: What the truth lacks in float64; None for nothing.
        unit: The unit round-off of the inputs.
        kind: The arithmetic of the function.
        backward: Whether it is a gradient.

    Returns:
        Near, or None where the result has other than plain numbers, or is further away than the least that rounding explains of a whole one.
    """
    if not ours.is_floating_point():
        return None
    info = torch.finfo(ours.dtype)
    apart, size = ours.to(torch.float64, copy=True).sub_(truth), truth.abs()
    apart = (apart if low is None else apart.sub_(low)).abs_()
    furthest, largest = apart.amax().item(), size.amax().item()
    if not (math.isfinite(furthest) and largest < 0.9 * info.max):
        return None
    smallest = info.smallest_normal
    error = max(
        furthest / max(largest, smallest),
        norm_of(apart) / max(norm_of(size), smallest * math.sqrt(size.numel())),
    )
    limit = limit_of(call, ours, 0.0, unit, kind, backward)
    return Near(apart, size, info, error, limit) if error <= limit else None


def norm_of(tensor):
    """The L2 norm; for large tensors in half of the time that torch's own takes."""
    flat = tensor.reshape(-1)
    return math.sqrt(torch.dot(flat, flat).item())


class Near:
    """How far the elements of a result are from the truth, all of them finite, and the whole in ulp."""

    def __init__(self, apart, size, info, error, limit):
        self._apart, self._size, self._info = apart, size, info
        self._powers = None
        self.error, self.limit = error / info.eps, limit / info.eps

    def holds(self, bound):
        """Whether every element is within its bound."""
        ulps = bound.ulps * self._info.eps
        if bound.distance is None:
            # A unit in the last place is more than half an eps of the value.
            if torch.sub(self._apart, self._size, alpha=ulps / 2).amax().item() <= 0:
                return True
            return torch.sub(self._apart, self._rounded_down(), alpha=ulps).amax().item() <= 0
        room = (self._rounded_down() * ulps).add_(bound.distance).sub_(self._apart)
        least = room.amin().item()
        return not (room < 0).any() if math.isnan(least) else least >= 0

    def _rounded_down(self):
        """The sizes, as powers of two; none is below those that have all of their digits."""
        if self._powers is None:
            bits = self._size.clamp_(min=self._info.smallest_normal).view(torch.int64)
            self._powers = bits.bitwise_and_(POWERS).view(torch.float64)
        return self._powers

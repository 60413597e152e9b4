"""A reference that is rounded once more everywhere: how far rounding alone moves each tensor of this model and these data."""

import torch


class Rounding:
    """Moves each element by one unit of its type's precision, up or down, by a generator of its own."""

    def __init__(self) -> None:
        self._generator = torch.Generator().manual_seed(20_260_101)

    def rounded(self, value: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of floats rounded once more; others as they are."""
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or hasattr(value, "placements"):
            return value
        eps = torch.finfo(value.dtype).eps
        signs = torch.randint(0, 2, value.shape, generator=self._generator).to(value.device, torch.float32) * 2 - 1
        with torch.no_grad():
            change = (value.detach().float() * signs * eps).to(value.dtype)
        return value + change

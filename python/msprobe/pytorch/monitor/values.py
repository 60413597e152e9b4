"""Statistics of tensors wherever they are: in host memory by the kernels, on devices by reductions that one copy fetches."""

import functools
from typing import Any, Optional

import torch

from ..._capture.log import logger
from ..._monitor.board import Board
from ..device_stats import is_capturing

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_PENDING = 4096  # tensors whose reductions wait on a device, at most


@functools.cache
def wide_type(device_type: str) -> torch.dtype:
    """float64, or float32 on devices that have none."""
    try:
        torch.ones(1, dtype=torch.float64, device=device_type)
    except (TypeError, RuntimeError):
        logger.warning("monitor: %s has no double precision: its norms and means are summed in float32", device_type)
        return torch.float32
    return torch.float64


def local_part(tensor: Any) -> Any:
    """What this rank holds: the shard of a DTensor, the tensor itself otherwise."""
    if type(tensor) in _PLAIN:
        return tensor
    to_local = getattr(tensor, "to_local", None)
    return to_local() if to_local is not None and not isinstance(tensor, torch.nn.Module) else tensor


class Values:
    """Takes tensors for the board."""

    def __init__(self, board: Board) -> None:
        """Reads from now on into this board."""
        self._board = board
        self._zeros = "zeros" in board.columns("other")
        self.eps = board.eps
        self._pending: list = []  # (series, shape, dtype, row on its device)
        self.threads = torch.get_num_threads()

    def take(self, numbers: list, tensors: list, often: bool = False) -> None:
        """Values of this step.

        Args:
            numbers: Series of the board.
            tensors: One for each; what is no tensor has no values.
            often: Whether a tensor may come several times in a step.
        """
        shapes = {}
        for i, tensor in enumerate(tensors):
            if type(tensor) not in _PLAIN and hasattr(tensor, "to_local"):
                shapes[i] = list(tensor.shape)
        if shapes:
            with torch.no_grad():
                tensors = [local_part(t.detach()) if i in shapes else t for i, t in enumerate(tensors)]
        left = self._board.take(numbers, tensors, self.threads, often)
        if left:
            with torch.no_grad():
                for i in left:
                    self._take_odd(numbers[i], tensors[i])
        for i, shape in shapes.items():
            self._board.set_shape(numbers[i], str(shape))

    def _take_odd(self, number: int, tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor):
            self._board.put(number, [])
            return
        plain = tensor.detach()
        if plain.layout is not torch.strided:
            plain = plain.to_dense()
        if plain.device.type not in ("cpu", "meta") and plain.numel() and not plain.is_complex():
            self._reduce(number, plain)
            return
        if plain.device.type == "meta":
            self._board.put(number, [])
            return
        plain = local_part(plain).cpu().resolve_conj().resolve_neg().as_subclass(torch.Tensor)
        if self._board.take([number], [plain], self.threads):
            self._board.put(number, [])

    def _reduce(self, number: int, tensor: torch.Tensor) -> None:
        if is_capturing(tensor.device):
            return
        wide = wide_type(tensor.device.type)
        low, high = torch.aminmax(tensor)
        floating = tensor.is_floating_point()
        total = torch.sum(tensor, dtype=wide)
        norm = torch.linalg.vector_norm(tensor if floating else tensor.to(wide), dtype=wide)
        nans = torch.isnan(tensor).sum() if floating else torch.zeros((), device=tensor.device)
        near = (tensor.abs() < self.eps).sum() if self._zeros and tensor.dtype is not torch.bool else None
        parts = [low, high, total / tensor.numel(), norm, nans, near if near is not None else nans]
        row = torch.stack([part.to(wide) for part in parts])
        self._pending.append((number, list(tensor.shape), str(tensor.dtype), tensor.numel(), row))
        if len(self._pending) >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Fetches what devices have computed: one copy for each device."""
        pending, self._pending = self._pending, []
        by_device: dict = {}
        for entry in pending:
            by_device.setdefault(entry[4].device, []).append(entry)
        for entries in by_device.values():
            rows = torch.stack([entry[4] for entry in entries]).cpu().tolist()
            for (number, shape, dtype, count, _), row in zip(entries, rows):
                self._board.put_summary(number, [float(count), *row], shape, dtype)

    def forget(self) -> None:
        """Drops what was not fetched."""
        self._pending.clear()


def first_tensor(value: Any) -> Optional[torch.Tensor]:
    """The first tensor of a value or of a tuple or list."""
    if isinstance(value, (list, tuple)):
        return next((item for item in value if isinstance(item, torch.Tensor)), None)
    return value if isinstance(value, torch.Tensor) else None

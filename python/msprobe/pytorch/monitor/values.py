"""Statistics of tensors wherever they are: in host memory by the kernels, on devices by reductions that one copy fetches."""

from typing import Any, Optional

import torch

from ..._monitor.board import Board
from .device_rows import DeviceRows, DeviceStatistics

_PLAIN = (torch.Tensor, torch.nn.Parameter)


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
        self.eps = board.eps
        columns = board.columns("other")
        self.rows = DeviceRows()  # what is fetched at the end of the step
        self._statistics = DeviceStatistics(self.rows, board, "zeros" in columns, "nans" in columns)
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
                own = [i for i in left if not self._take_odd(numbers[i], tensors[i])]
                self._statistics.take([numbers[i] for i in own], [_plain(tensors[i]) for i in own])
        for i, shape in shapes.items():
            self._board.set_shape(numbers[i], str(shape))

    def _take_odd(self, number: int, tensor: Any) -> bool:
        """Takes what is not read by kernels of the host; False: its device computes the statistics."""
        if not isinstance(tensor, torch.Tensor):
            self._board.put(number, [])
            return True
        plain = _plain(tensor)
        if plain.device.type not in ("cpu", "meta") and plain.numel() and not plain.is_complex():
            return False
        if plain.device.type == "meta":
            self._board.put(number, [])
            return True
        plain = local_part(plain).cpu().resolve_conj().resolve_neg().as_subclass(torch.Tensor)
        if self._board.take([number], [plain], self.threads):
            self._board.put(number, [])
        return True

    def flush(self) -> None:
        """Fetches what devices have computed: one copy for each device."""
        self._statistics.flush()
        self.rows.fetch()

    def forget(self) -> None:
        """Drops what was not fetched."""
        self._statistics.forget()
        self.rows.forget()


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    return plain if plain.layout is torch.strided else plain.to_dense()


def first_tensor(value: Any) -> Optional[torch.Tensor]:
    """The first tensor of a value or of a tuple or list."""
    if isinstance(value, (list, tuple)):
        return next((item for item in value if isinstance(item, torch.Tensor)), None)
    return value if isinstance(value, torch.Tensor) else None

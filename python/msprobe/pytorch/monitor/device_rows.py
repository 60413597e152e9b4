"""Statistics that a device computes of its tensors while the step runs; one copy fetches them all at its end."""

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import torch

from ..._capture.log import logger
from .. import many
from ..device_stats import is_capturing

_CELLS = 256  # of the buffers that single tensors write into
_PENDING = 4096  # rows that wait on a device, at most
_ALONE = 1 << 20  # elements: kernels of a larger tensor take longer than their launches
_PIECE = 1 << 24  # elements of the tensors whose copies are there at the same time
_TOGETHER = 4  # tensors: for fewer it does not pay


@functools.cache
def wide_type(device_type: str) -> torch.dtype:
    """float64, or float32 on devices that have none."""
    try:
        torch.ones(1, dtype=torch.float64, device=device_type)
    except (TypeError, RuntimeError):
        logger.warning("monitor: %s has no double precision: its norms and means are summed in float32", device_type)
        return torch.float32
    return torch.float64


# Statistics by their names, of a tensor that is not empty, and of the dtype that sums are in.
FORMULAS = {
    "norm": lambda tensor, wide, eps: torch.linalg.vector_norm(tensor, dtype=wide),
    "min": lambda tensor, wide, eps: tensor.min(),
    "max": lambda tensor, wide, eps: tensor.max(),
    "mean": lambda tensor, wide, eps: tensor.sum(dtype=wide) / tensor.numel(),
    "nans": lambda tensor, wide, eps: torch.isnan(tensor).sum(),
    "zeros": lambda tensor, wide, eps: (tensor.abs() < eps).sum(dtype=wide) / tensor.numel(),
}


class DeviceRows:
    """Rows of numbers that were computed where tensors are, and what is to be done with them once they are fetched."""

    def __init__(self) -> None:
        """Waits for nothing."""
        self._waiting: list = []  # (tensor of numbers, take)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, numbers: torch.Tensor, take: Callable[[list], None]) -> None:
        """Keeps numbers of a device.

        Args:
            numbers: One or more, of any shape.
            take: Called with them as a flat list, in fetch().
        """
        if not is_capturing(numbers.device):  # nothing is computed then
            self._waiting.append((numbers, take))

    def fetch(self) -> None:
        """Copies everything to the host, with one copy for each device, and hands it out in the order in which it came."""
        waiting, self._waiting = self._waiting, []
        by_device: dict = {}
        for number, (numbers, _) in enumerate(waiting):
            by_device.setdefault(numbers.device, []).append(number)
        found: dict = {}
        for device, places in by_device.items():
            wide = wide_type(device.type)
            flat = torch.cat([waiting[place][0].detach().reshape(-1).to(wide) for place in places]).tolist()
            begin = 0
            for place in places:
                end = begin + waiting[place][0].numel()
                found[place] = flat[begin:end]
                begin = end
        for place, (_, take) in enumerate(waiting):
            take(found[place])

    def forget(self) -> None:
        """Drops what was not fetched."""
        self._waiting.clear()


class DeviceStatistics:
    """Smallest, largest, mean, norm and counts of tensors of devices, for a board."""

    def __init__(self, rows: DeviceRows, board: Any, zeros: bool, nans: bool) -> None:
        """Computes nothing yet.

        Args:
            rows: What is computed goes there.
            board: put_summary() gets the statistics, `eps` is the bound of zeros.
            zeros: Whether elements near zero are counted.
            nans: Whether NaN are counted; else their count is 1 where there are any.
        """
        self._rows, self._board = rows, board
        self._zeros, self._nans = zeros, nans
        self._cells: dict = {}  # (device, dtype) -> _Cells
        self._lock = threading.Lock()  # a backward pass has a thread of its own for each device

    def take(self, numbers: list, tensors: list) -> None:
        """Starts what computes the statistics.

        Args:
            numbers: Series of the board.
            tensors: One for each, with elements, on devices; not complex.
        """
        groups: dict = {}
        for number, tensor in zip(numbers, tensors):
            readable = tensor.to(torch.uint8) if tensor.dtype is torch.bool else tensor
            entry = (number, list(tensor.shape), str(tensor.dtype), readable)
            groups.setdefault((tensor.device, readable.dtype), []).append(entry)
        for (device, dtype), entries in groups.items():
            if is_capturing(device):
                continue
            small = [entry for entry in entries if entry[3].numel() <= _ALONE]
            if len(small) < _TOGETHER or not dtype.is_floating_point or not many.are_there(device.type):
                small = []
            for piece in _pieces(small):
                self._together(piece)
            with self._lock:
                for entry in entries if not small else (e for e in entries if e[3].numel() > _ALONE):
                    self._alone(entry, device, dtype)
        if len(self._rows) + sum(len(cells.entries) for cells in self._cells.values()) >= _PENDING:
            self.flush()
            self._rows.fetch()

    def flush(self) -> None:
        """Gives to the rows what is in cells."""
        with self._lock:
            for cells in self._cells.values():
                cells.send(self._rows, self._put)

    def forget(self) -> None:
        """Drops what is in cells."""
        with self._lock:
            for cells in self._cells.values():
                cells.entries.clear()

    def _alone(self, entry: tuple, device: torch.device, dtype: torch.dtype) -> None:
        if dtype.is_floating_point and dtype.itemsize == 1:  # kernels of it are few
            entry, dtype = (*entry[:3], entry[3].float()), torch.float32
        stream = _stream(device)
        cells = self._cells.get((device, dtype))
        if cells is None:
            cells = self._cells[device, dtype] = _Cells(device, dtype, stream)
        if cells.stream != stream:  # what other streams wrote is not waited for: cells of this tensor's own
            own = _Cells(device, dtype, stream, 1)
            own.reduce(entry, self._nans, self._board.eps if self._zeros else None)
            own.send(self._rows, self._put)
            return
        if len(cells.entries) == _CELLS:
            cells.send(self._rows, self._put)
        cells.reduce(entry, self._nans, self._board.eps if self._zeros else None)

    def _together(self, entries: list) -> None:
        pieces: list = []
        parts = []
        for *_, tensor in entries:
            # Not every device sums halves in double.
            tensor = tensor.float() if tensor.element_size() < 4 else tensor
            own = many.pieces_of(tensor.contiguous())
            parts.append(len(own))
            pieces += own
        low, high, total, norm = many.extremes_and_sums(pieces)
        nans = torch.stack([torch.isnan(t).sum() for t in pieces]) if self._nans else torch.isnan(norm)
        near = torch.stack([_near(t, self._board.eps) for t in pieces]) if self._zeros else nans
        numbers = torch.stack([part.double() for part in (low, high, total, norm, nans, near)], dim=1)
        self._rows.add(numbers, functools.partial(self._put_pieces, _described(entries), parts))

    def _put_pieces(self, entries: list, parts: list, numbers: list) -> None:
        whole: list = []
        begin = 0
        for count in parts:
            rows = [numbers[6 * i : 6 * i + 6] for i in range(begin, begin + count)]
            begin += count
            lows, highs, totals, norms, nans, near = zip(*rows)
            odd = next((value for value in norms if value != value), None)
            if odd is not None:
                lows = highs = (odd,)
            whole += [min(lows), max(highs), sum(totals), math.hypot(*norms), sum(nans), sum(near)]
        self._put(entries, whole)

    def _put(self, entries: list, numbers: list) -> None:
        for place, (number, shape, dtype, count) in enumerate(entries):
            low, high, total, norm, nans, near = numbers[6 * place : 6 * place + 6]
            self._board.put_summary(number, [float(count), low, high, total / count, norm, nans, near], shape, dtype)


class _Cells:
    """Buffers that the kernels of single tensors of one dtype write into, so that no kernel has to collect them."""

    def __init__(self, device: torch.device, dtype: torch.dtype, stream: int, count: int = 0) -> None:
        self.stream, self._wide = stream, wide_type(device.type)
        count = count or _CELLS
        with torch.inference_mode(False):  # memory of an inference could not be written later
            self._ends = torch.empty(count, 2, dtype=dtype, device=device)
            self._sums = torch.empty(count, 2, dtype=self._wide, device=device)
            self._counts = torch.zeros(count, 2, dtype=torch.int64, device=device)
        self._views = [tuple(row.unbind()) for row in self._ends], [tuple(row.unbind()) for row in self._sums]
        self._count_views = [tuple(row.unbind()) for row in self._counts]
        self.entries: list = []

    def reduce(self, entry: tuple, nans: bool, eps: Any) -> None:
        tensor, cell = entry[3], len(self.entries)
        self.entries.append((*entry[:3], tensor.numel()))
        torch.aminmax(tensor, out=self._views[0][cell])
        total, norm = self._views[1][cell]
        dims = tuple(range(tensor.dim()))
        torch.sum(tensor, dim=dims, dtype=self._wide, out=total)
        if tensor.is_floating_point():
            torch.linalg.vector_norm(tensor, 2, dtype=self._wide, out=norm)
        else:
            torch.linalg.vector_norm(tensor.to(self._wide), 2, out=norm)
        if nans and tensor.is_floating_point():
            torch.sum(torch.isnan(tensor), dim=dims, out=self._count_views[cell][0])
        if eps is not None:
            torch.sum(torch.abs(tensor) < eps, dim=dims, out=self._count_views[cell][1])

    def send(self, rows: DeviceRows, put: Callable) -> None:
        entries, self.entries = self.entries, []
        if not entries:
            return
        used = slice(0, len(entries))
        sums = self._sums[used]
        nans, near = self._counts[used].unbind(1)
        counts = torch.stack([torch.maximum(nans, torch.isnan(sums[:, 1]).long()), near], dim=1)
        # A copy: the cells are written again before rows are fetched.
        numbers = torch.cat([self._ends[used].to(self._wide), sums, counts.to(self._wide)], dim=1)
        rows.add(numbers, functools.partial(put, entries))


def _stream(device: torch.device) -> int:
    """A number of the current stream; 0 where there is one only."""
    if device.type == "cuda" and hasattr(torch._C, "_cuda_getCurrentRawStream"):
        return torch._C._cuda_getCurrentRawStream(device.index)
    backend = getattr(torch, device.type, None)
    current = getattr(backend, "current_stream", None) if device.type != "cpu" else None
    return getattr(current(device), "stream_id", 0) if current is not None else 0


def _near(tensor: torch.Tensor, eps: float) -> torch.Tensor:
    return (tensor.abs() < eps).sum()


def _pieces(entries: list) -> list:
    pieces: list = []
    room = 0
    for entry in entries:
        if entry[3].numel() > room:
            pieces.append([])
            room = _PIECE
        pieces[-1].append(entry)
        room -= entry[3].numel()
    return pieces


def _described(entries: list) -> list:
    return [(number, shape, dtype, tensor.numel()) for number, shape, dtype, tensor in entries]

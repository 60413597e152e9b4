"""Small floating tensors of a stream, copied where they are met and reduced many at a time."""

from collections import deque
from collections.abc import Callable

import torch

from .. import _core
from . import many

MOST_ELEMENTS = 1 << 20  # of a tensor: the kernels of a larger one take longer than launching them
_ELEMENTS = 1 << 23  # of the copies of a batch
_CELLS = 1024
_UNDER_WAY = 64  # batches whose numbers have not come
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class Batches:
    """The batches of one stream.

    Memory of the device: the copies of the open batch, of at most two times _ELEMENTS elements in batches under way, and
    while one is reduced as many again, all in single precision: 128 MiB. Beyond that the oldest batch is waited for.
    """

    def __init__(self, host_memory: Callable, event: Callable, alone: Callable) -> None:
        """Has no tensor yet.

        Args:
            host_memory: Makes memory of the host, of a shape and dtype, that copies do not block on.
            event: Marks the end of what the stream has to do now; None where there are no streams.
            alone: Reduces a tensor by itself, for a slot: for those with infinities or NaN, which are counted.
        """
        self._host_memory, self._event, self._alone = host_memory, event, alone
        self._copies: list = []
        self._pieces: list = []  # of the copies
        self._slots: list = []  # (slot, first piece, pieces)
        self._elements = 0
        self._sent: deque = deque()  # (copies, pieces, slots, elements, host memory, event)
        self._under_way = 0  # elements of these
        self._free: list = []  # host memory

    @staticmethod
    def takes(tensor: torch.Tensor) -> bool:
        """Whether a tensor is one for a batch."""
        return (
            tensor.dtype in _DTYPES
            and 0 < tensor.numel() <= MOST_ELEMENTS
            and tensor.layout is torch.strided
            and many.are_there(tensor.device.type)
        )

    def add(self, tensor: torch.Tensor, slot: int) -> None:
        """Copies a tensor, on the current stream."""
        copy = tensor.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
        pieces = many.pieces_of(copy)
        if len(self._pieces) + len(pieces) > _CELLS or self._elements + copy.numel() > _ELEMENTS:
            self.send()
            self.poll()
        self._copies.append(copy)
        self._slots.append((slot, len(self._pieces), len(pieces)))
        self._pieces += pieces
        self._elements += copy.numel()

    def send(self) -> None:
        """Starts what reduces the tensors that are there; on the stream of the tensors."""
        copies, pieces, slots, elements = self._copies, self._pieces, self._slots, self._elements
        if not copies:
            return
        self._copies, self._pieces, self._slots, self._elements = [], [], [], 0
        try:
            while self._sent and (self._under_way + elements > 2 * _ELEMENTS or len(self._sent) >= _UNDER_WAY):
                self._receive()
            low, high, total, norm = many.extremes_and_sums(pieces)
            nothing = torch.zeros_like(norm)
            cells = torch.stack([high.double(), low.double(), total, norm, *[nothing] * 4], dim=1)
            host = self._free.pop() if self._free else self._host_memory((_CELLS, cells.shape[1]), torch.float64)
            host[: len(pieces)].copy_(cells, non_blocking=True)
            event = self._event()
        except RuntimeError:  # the device is out of memory, or lost
            for slot, _, _ in slots:
                _core.deliver_nothing(slot)
            _core.resolve_deferred()
            raise
        self._sent.append((copies, len(pieces), slots, elements, host, event))
        self._under_way += elements

    def poll(self) -> None:
        """Hands out what has come."""
        while self._sent and (self._sent[0][5] is None or self._sent[0][5].query()):
            self._receive()

    def finish(self) -> None:
        """Waits for everything that was added."""
        while self._sent:
            self._receive()
        self.send()
        while self._sent:
            self._receive()
        del self._free[1:]

    def _receive(self) -> None:
        copies, count, slots, elements, host, event = self._sent.popleft()
        self._under_way -= elements
        if event is not None:
            event.synchronize()
        finite = host[:count, 2:4].isfinite().all(dim=1).tolist()
        whole = [all(finite[first : first + parts]) for _, first, parts in slots]
        _core.deliver_cells(host.data_ptr(), True, [cells for cells, fine in zip(slots, whole) if fine])
        self._free.append(host)
        for copy, (slot, _, _), fine in zip(copies, slots, whole):
            if not fine:
                try:
                    self._alone(copy, slot)
                except RuntimeError as error:
                    _core.deliver_nothing(slot)
                    _core.note_skip("the values of a tensor could not be computed on its device", str(error))

"""Statistics of tensors that are on a device, without waiting for the device.

Where a small floating tensor is met it is copied, and many copies are reduced together (device_batches.py). Of others a
few kernels are started on their stream that write Max, Min, sum and norm into cells of a buffer on the device. Full
buffers are copied to pinned host memory as one piece, on the same stream and without blocking; they are read when the
copy has come, which is asked and not waited for. With checksums the elements themselves are copied, into a ring of
pinned memory, and everything is computed on the host.

Memory of a device and stream: the batches, cells of at most _SEGMENTS * 128 KiB, and while the kernels of a tensor run two copies
(three of complex ones) in double precision of _CHUNK of its elements; on the host the same cells and a ring of _RING
bytes. When all of it is in use the oldest piece is waited for.
"""

import functools
import math
import os
import threading
from collections import deque
from contextlib import nullcontext
from typing import Any, Optional

import torch

from .. import _core
from .._capture.log import logger
from .device_batches import Batches

try:
    from torch.utils._python_dispatch import _disable_current_modes
except ImportError:  # before torch 2.1
    _disable_current_modes = nullcontext

_CELLS = 2048  # of a segment
_SEGMENTS = 32
_CHUNK = 1 << 22  # elements that one row of cells stands for
_RING = 64 << 20
_BATCH = 8 << 20  # bytes in the ring between two events

_disable_transforms = getattr(torch._C, "_DisableFuncTorch", nullcontext)
_HIGHEST = -(1 << 63)
_UINT64 = getattr(torch, "uint64", None)  # since PyTorch 2.3


def set_up() -> None:
    """MSPROBE_DEVICE_KERNEL=1 gives tensors on CUDA devices to our kernel, which no device has run yet.

    MSPROBE_FORCE_DEVICE_PATH=1 sends tensors in host memory the same way, MSPROBE_DEVICE_KERNEL=host also through the kernel;
    for tests.
    """
    values = DeviceValues()
    kernel = os.environ.get("MSPROBE_DEVICE_KERNEL")
    _core.set_deferral(
        values.defer,
        values.fetch,
        os.environ.get("MSPROBE_FORCE_DEVICE_PATH") == "1",
        kernel=kernel in ("1", "host"),
        kernel_of_host=kernel == "host",
    )


class DeviceValues:
    """The streams that tensors were met on. The recorder calls `defer` and `fetch`."""

    def __init__(self) -> None:
        self._streams: dict[tuple, _Stream] = {}
        self._lock = threading.Lock()  # kernels give the GIL away: a cell must be written before its segment is copied

    def defer(self, tensor: torch.Tensor, slot: int, checksums: bool, integer: bool) -> bool:
        """Starts what computes the values of `tensor`; False where it cannot be, which is counted."""
        backend = _backend(tensor.device)
        if is_capturing(tensor.device):
            _core.note_skip("a tensor was met while a graph of the device was captured", f"on {tensor.device}")
            return False
        with self._lock, _without_modes(), _disable_transforms(), torch.no_grad():
            stream = self._stream(tensor.device, backend)
            plain = tensor.detach()
            if checksums:
                stream.copy(plain, slot)
            else:
                stream.reduce(plain, slot, integer)
        return True

    def fetch(self) -> None:
        """Waits for everything that was started."""
        fault = _core.take_kernel_fault()
        if fault:
            logger.warning("%s; PyTorch computes the statistics of its tensors", fault)
        with self._lock, _without_modes(), _disable_transforms(), torch.no_grad():
            streams, self._streams = self._streams, {}
            failed = None
            for stream in streams.values():
                try:
                    with _current(stream.backend, stream.stream):
                        stream.finish()
                except RuntimeError as error:  # those of the other streams have come
                    failed = failed or error
            self._streams = streams
            if failed is not None:
                raise failed

    def _stream(self, device: torch.device, backend: Any) -> "_Stream":
        current = backend.current_stream(device) if backend is not None else None
        key = (device, getattr(current, "stream_id", None))
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(device, backend, current)
        return stream


_NOTHING = nullcontext()
# How many modes there are; before PyTorch 2.1 nobody says.
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 1)


def _without_modes() -> Any:
    """Most programs have none, and leaving those of others takes longer than starting a kernel."""
    return _disable_current_modes() if _dispatch_modes() or _function_modes() else _NOTHING


def _current(backend: Any, stream: Any) -> Any:
    """What is started inside belongs to `stream`."""
    enter = getattr(backend, "stream", None)
    return enter(stream) if enter is not None and stream is not None else nullcontext()


def _backend(device: torch.device) -> Any:
    """torch.cuda, torch.npu, ...; None where there are no streams."""
    return _backend_of(device.type)


@functools.cache
def _backend_of(device_type: str) -> Any:
    backend = None if device_type == "cpu" else getattr(torch, device_type, None)
    return backend if hasattr(backend, "current_stream") and hasattr(backend, "Event") else None


def is_capturing(device: torch.device) -> bool:
    """Tells whether a graph is being captured on the current stream of the device."""
    backend = _backend(device)
    if backend is None:
        return False
    test = getattr(backend, "is_current_stream_capturing", None)
    return bool(test and test())


class _Stream:
    """Segments and ring of one stream of a device; for one thread at a time."""

    def __init__(self, device: torch.device, backend: Any, stream: Any) -> None:
        self.device, self.backend, self.stream = device, backend, stream
        self.accumulate = _widest(device)
        self.segment: Optional[_Segment] = None
        self.sent: deque[_Segment] = deque()
        self.free: list[_Segment] = []
        self.ring: Optional[_Ring] = None
        self.batches = Batches(
            lambda shape, dtype: _host_memory(shape, dtype, backend),
            lambda: _event(backend, stream),
            lambda copy, slot: self.reduce_alone(copy, slot, False),
        )

    # ---- reductions

    def reduce(self, tensor: torch.Tensor, slot: int, integer: bool) -> None:
        if self.batches.takes(tensor):
            self.batches.add(tensor, slot)
        else:
            self.reduce_alone(tensor, slot, integer)

    def reduce_alone(self, tensor: torch.Tensor, slot: int, integer: bool) -> None:
        parts = list(_parts(tensor))
        if self.segment is not None and self.segment.used + len(parts) > _CELLS:
            self._send()
        if self.segment is None:
            self._poll()
            self.segment = self._segment()
        if len(parts) > _CELLS:
            raise ValueError(f"{tensor.numel()} elements are more than {_CELLS * _CHUNK}")
        first = self.segment.used
        self.segment.used += len(parts)
        for number, part in enumerate(parts):
            self._reduce_part(part, first + number, integer)
        self.segment.slots.append((slot, first, len(parts)))

    def _reduce_part(self, part: torch.Tensor, cell: int, integer: bool) -> None:
        floats = self.segment.cells[cell].unbind()
        if integer:
            ints = self.segment.integers[cell].unbind()
            if part.dtype is _UINT64:
                ordered = part.view(torch.int64).bitwise_xor(_HIGHEST)
            else:
                ordered = part.to(torch.int64)
            torch.aminmax(ordered, out=(ints[7], ints[6]))
        wide = self._widened(part)
        if not integer:
            torch.aminmax(wide, out=(floats[1], floats[0]))
        torch.sum(wide, dim=tuple(range(wide.dim())), out=floats[2])
        self._norm(wide, part.dtype, floats[3])
        if part.dtype.is_floating_point or part.dtype.is_complex:
            # What is not finite gives NaN here, and the norm of order 0 counts all that is not zero.
            odd = wide - wide
            torch.linalg.vector_norm(odd, 0, out=floats[4])
            torch.ne(wide, wide, out=odd)
            torch.linalg.vector_norm(odd, 0, out=floats[5])

    def _norm(self, wide: torch.Tensor, dtype: torch.dtype, out: torch.Tensor) -> None:
        floating = dtype.is_floating_point or dtype.is_complex
        if not floating or torch.finfo(dtype).max < math.sqrt(torch.finfo(self.accumulate).max):
            torch.linalg.vector_norm(wide, 2, out=out)
            return
        # Squares could leave the range that they are added in.
        largest = torch.linalg.vector_norm(wide, math.inf)
        scale = torch.where((largest > 0) & largest.isfinite(), largest, torch.ones_like(largest))
        torch.linalg.vector_norm(wide / scale, 2, out=out)
        out.mul_(scale)

    def _widened(self, part: torch.Tensor) -> torch.Tensor:
        if not part.dtype.is_complex:
            return part.to(self.accumulate)
        return part.to(torch.complex128 if self.accumulate is torch.float64 else torch.complex64).abs()

    def _segment(self) -> "_Segment":
        if self.free:
            return self.free.pop()
        if len(self.sent) >= _SEGMENTS:  # the bound of the memory
            self._receive(wait=True)
            return self.free.pop()
        return _Segment(self.device, self.backend, self.accumulate)

    def _send(self) -> None:
        segment, self.segment = self.segment, None
        if segment is None or not segment.used:
            return
        try:
            segment.send(self.stream)
        except RuntimeError:  # the device is out of memory, or lost
            for slot, _, _ in segment.slots:
                _core.deliver_nothing(slot)
            _core.resolve_deferred()
            raise
        self.sent.append(segment)

    def _poll(self) -> None:
        while self.sent and self.sent[0].has_come():
            self._receive(wait=False)

    def _receive(self, wait: bool) -> None:
        segment = self.sent.popleft()
        if wait:
            segment.wait()
        _core.deliver_cells(segment.host.data_ptr(), self.accumulate is torch.float64, segment.slots)
        segment.clear()
        self.free.append(segment)

    # ---- elements

    def copy(self, tensor: torch.Tensor, slot: int) -> None:
        if self.ring is None:
            self.ring = _Ring(self.device, self.backend, self.stream)
        self.ring.copy(tensor, slot)

    # ---- both

    def finish(self) -> None:
        self.batches.finish()
        self._send()
        while self.sent:
            self._receive(wait=True)
        del self.free[1:]
        if self.ring is not None:
            self.ring.finish()


def _widest(device: torch.device) -> torch.dtype:
    """float64, or float32 on devices that have none."""
    try:
        torch.ones(1, dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        logger.warning("%s has no double precision: Mean and Norm of its tensors are summed in float32.", device.type)
        return torch.float32
    return torch.float64


def _parts(tensor: torch.Tensor) -> Any:
    """Pieces of at most _CHUNK elements, none of them copied."""
    if tensor.numel() <= _CHUNK:
        yield tensor
        return
    longest = max(range(tensor.dim()), key=tensor.size)
    rows = max(1, _CHUNK * tensor.size(longest) // tensor.numel())
    for piece in tensor.split(rows, dim=longest):
        yield from _parts(piece)


class _Segment:
    """Cells of 64 bytes for some tensors, and where they go on the host (deferred.h has their layout)."""

    def __init__(self, device: torch.device, backend: Any, accumulate: torch.dtype) -> None:
        width = 8 if accumulate is torch.float64 else 16
        with torch.inference_mode(False):  # memory of an inference could not be written later
            self.cells = torch.zeros(_CELLS, width, dtype=accumulate, device=device)
        self.integers = self.cells.view(torch.int64)
        self.host = _host_memory((_CELLS, width), accumulate, backend)
        self.backend = backend
        self.event = None
        self.clear()

    def clear(self) -> None:
        self.used = 0
        self.slots: list[tuple] = []

    def send(self, stream: Any) -> None:
        self.host[: self.used].copy_(self.cells[: self.used], non_blocking=True)
        self.event = _event(self.backend, stream)

    def has_come(self) -> bool:
        return self.event is None or self.event.query()

    def wait(self) -> None:
        if self.event is not None:
            self.event.synchronize()


def _host_memory(shape: tuple, dtype: torch.dtype, backend: Any) -> torch.Tensor:
    with torch.inference_mode(False):  # pinned, so that copies do not block
        return torch.empty(shape, dtype=dtype, device="cpu", pin_memory=backend is not None)


def _event(backend: Any, stream: Any) -> Any:
    if backend is None:
        return None
    event = backend.Event()
    event.record(stream)
    return event


class _Ring:
    """Pinned host memory through which elements pass on their way to the checksum."""

    def __init__(self, device: torch.device, backend: Any, stream: Any) -> None:
        self.device, self.backend, self.stream = device, backend, stream
        self.memory = _host_memory((_RING,), torch.uint8, backend)
        self.head = 0  # next byte to write
        self.held: deque[tuple] = deque()  # (slot, first byte, bytes) that are under way or have come
        self.events: deque[tuple] = deque()  # (event, number of entries of `held` it stands for)
        self.open_entries = self.open_bytes = 0

    def copy(self, tensor: torch.Tensor, slot: int) -> None:
        # A single element is contiguous with any stride, and view() refuses it.
        elements = tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)
        size = (elements.numel() + 63) // 64 * 64
        if size > _RING:  # by itself; it is waited for
            self.finish()
            whole = torch.empty(elements.numel(), dtype=torch.uint8)
            whole.copy_(elements)
            _core.deliver_bytes(slot, whole.data_ptr())
            _core.resolve_deferred()
            return
        self._poll()
        first = self._room(size)
        self.memory[first : first + elements.numel()].copy_(elements, non_blocking=True)
        self.held.append((slot, first, size))
        self.head = first + size
        self.open_entries += 1
        self.open_bytes += size
        if self.open_bytes >= _BATCH or self.open_entries >= _CELLS:
            self._mark()

    def _room(self, size: int) -> int:
        while self.held:
            tail = self.held[0][1]
            end = tail if self.head <= tail else _RING
            if self.head + size <= end:
                return self.head
            if end == _RING and size <= tail:
                return 0
            self._mark()
            self._take(wait=True)
        return 0

    def _mark(self) -> None:
        if self.open_entries:
            self.events.append((_event(self.backend, self.stream), self.open_entries))
            self.open_entries = self.open_bytes = 0

    def _poll(self) -> None:
        while self.events and (self.events[0][0] is None or self.events[0][0].query()):
            self._take(wait=False)

    def _take(self, wait: bool) -> None:
        event, entries = self.events.popleft()
        if wait and event is not None:
            event.synchronize()
        for _ in range(entries):
            slot, first, _ = self.held.popleft()
            _core.deliver_bytes(slot, self.memory.data_ptr() + first)
        _core.resolve_deferred()

    def finish(self) -> None:
        self._mark()
        while self.events:
            self._take(wait=True)

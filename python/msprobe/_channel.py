"""The side of a process of ours that the command talks to: lines of JSON, and bytes behind them or in memory of both."""

import json
import math
import mmap
import os
import signal
import socket
import sys

# As src/lab/shared_bytes.h has them.
SHARED, PART_SIZE, ALIGNED = 3, 1 << 40, 64  # a descriptor, if a request names a part of it
LEAST_MAPPED, MOST_MAPPED = 1 << 20, 16 << 20  # of a part, at a time; more than that the command does not keep


def finite(value):
    """Replaces infinities by text, which JSON can hold."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def text_of(value):
    """A line of JSON; infinities and NaN, which are rare, as text."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(finite(value))


class SharedParts:
    """Writes bytes into the parts of the memory of both."""

    def __init__(self):
        self._maps = {}  # of each part: its beginning, whose memory is there

    def leave(self, blobs, part):
        """Writes bytes into a part. The number of bytes, None where there is no room."""
        pieces = [memoryview(blob).cast("B") for blob in blobs]
        sizes = [-(-piece.nbytes // ALIGNED) * ALIGNED for piece in pieces]
        try:
            if sum(sizes) <= MOST_MAPPED:
                self._copy(pieces, sizes, part)
            else:
                self._write(pieces, sizes, part)
        except (OSError, ValueError):
            return None
        return sum(sizes)

    def _copy(self, pieces, sizes, part):
        view, at = self._map(part, sum(sizes)), 0
        for piece, size in zip(pieces, sizes):
            view[at : at + piece.nbytes] = piece
            at += size

    def _map(self, part, size):
        """Memory that is there already: a file system without room ends a process that finds out while it writes."""
        view = self._maps.get(part)
        if view is None or len(view) < size:
            length = max(LEAST_MAPPED, 1 << (size - 1).bit_length())
            os.posix_fallocate(SHARED, part * PART_SIZE, length)
            view = self._maps[part] = memoryview(mmap.mmap(SHARED, length, offset=part * PART_SIZE))
        return view

    def _write(self, pieces, sizes, part):
        """Of many bytes, whose memory the command gives back afterwards."""
        self._maps.pop(part, None)
        at = part * PART_SIZE
        for piece, size in zip(pieces, sizes):
            end = at + size
            while piece.nbytes:
                wrote = os.pwritev(SHARED, [piece], at)
                piece, at = piece[wrote:], at + wrote
            at = end
        os.posix_fallocate(SHARED, part * PART_SIZE, at - part * PART_SIZE)


def leave_at_once():
    """Ends the process without taking its modules apart, which for torch takes as long as a hundred calls."""
    sys.stderr.flush()
    os._exit(0)


def channel():
    """The stream to the command, and a function that says an answer and its bytes on it."""
    stream = socket.socket(fileno=os.dup(0)).makefile("rwb")
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command says when it is over

    parts = SharedParts()

    def say(value, blobs=(), part=None):
        shared = parts.leave(blobs, part) if part is not None and blobs else None
        if shared:
            value, blobs = {**value, "shared": shared}, ()
        stream.write(text_of(value).encode() + b"\n")
        for blob in blobs:
            stream.write(memoryview(blob))
        stream.flush()

    return stream, say

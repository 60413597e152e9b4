"""The side of a process of ours that the command talks to: lines of JSON, and bytes behind them or in memory of both."""

import json
import math
import os
import signal
import socket
import sys

# As src/lab/shared_bytes.h has them.
SHARED, PART_SIZE, ALIGNED = 3, 1 << 40, 64  # a descriptor, if a request names a part of it
MOST_PIECES = 512  # of one call of the system


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


def leave(blobs, part):
    """Writes bytes into a part of the memory of both. The number of bytes, None where there is no room."""
    pieces = []
    for blob in blobs:
        piece = memoryview(blob).cast("B")
        pieces += [piece, memoryview(bytes(-piece.nbytes % ALIGNED))]
    pieces = [piece for piece in pieces if piece.nbytes]
    begin = at = part * PART_SIZE
    try:
        while pieces:
            wrote = os.pwritev(SHARED, pieces[:MOST_PIECES], at)
            at += wrote
            while pieces and wrote >= pieces[0].nbytes:
                wrote -= pieces.pop(0).nbytes
            if wrote:
                pieces[0] = pieces[0][wrote:]
    except OSError:
        return None
    return at - begin


def leave_at_once():
    """Ends the process without taking its modules apart, which for torch takes as long as a hundred calls."""
    sys.stderr.flush()
    os._exit(0)


def channel():
    """The stream to the command, and a function that says an answer and its bytes on it."""
    stream = socket.socket(fileno=os.dup(0)).makefile("rwb")
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command says when it is over

    def say(value, blobs=(), part=None):
        shared = leave(blobs, part) if part is not None and blobs else None
        if shared:
            value, blobs = {**value, "shared": shared}, ()
        stream.write(text_of(value).encode() + b"\n")
        for blob in blobs:
            stream.write(memoryview(blob))
        stream.flush()

    return stream, say

"""The side of a process of ours that the command talks to: lines of JSON, and bytes behind them."""

import json
import math
import os
import signal
import socket
import sys


def finite(value):
    """Replaces infinities by text, which JSON can hold."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def channel():
    """The stream to the command, and a function that says an answer and its bytes on it."""
    stream = socket.socket(fileno=os.dup(0)).makefile("rwb")
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command says when it is over

    def say(value, blobs=()):
        stream.write(json.dumps(finite(value)).encode() + b"\n")
        for blob in blobs:
            stream.write(memoryview(blob))
        stream.flush()

    return stream, say

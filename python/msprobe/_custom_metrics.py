"""The process in which `msprobe compare --custom_metric` runs the user's functions.

usage: python _custom_metrics.py FILE...      (descriptor 0 is a socket to the command)

A file defines `column_name()` and `compare(n_tensor, b_tensor)`. First a line goes out, {"columns": [...]} or {"error": text}.
Then for each pair of tensors a line {"n": {"dtype", "shape", "bytes"}, "b": {...}} comes in, followed by the elements of both,
and a line {"cells": [...], "errors": [text or null, ...]} goes out.
"""

import importlib.util
import inspect
import json
import math
import os
import re
import socket
import sys

FAILED = "unsupported"


class Caught:
    """Catches what the user's code raises: `error` is its text, or None."""

    error = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if not isinstance(error, Exception):
            return False
        self.error = f"{type(error).__name__}: {error}"
        return True


class Metric:
    """The two functions of one file."""

    def __init__(self, path):
        name = re.sub(r"\W", "_", os.path.splitext(os.path.basename(path))[0])
        spec = importlib.util.spec_from_file_location(f"msprobe_metric_{name}", path)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(path))  # a file may import its neighbours
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.pop(0)
        for function in ("column_name", "compare"):
            if not callable(getattr(module, function, None)):
                raise ValueError(f"it must define the function {function}")
        required = [
            p
            for p in inspect.signature(module.compare).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if len(required) != 2:
            raise ValueError("compare must take two arguments, the target's tensor and the golden one")
        self.column = module.column_name()
        if not isinstance(self.column, str) or not self.column.strip():
            raise ValueError("column_name must return a text that is not empty")
        self.compare = module.compare

    def cell(self, n, b):
        """Computes the cell of the table for a pair of tensors."""
        value = self.compare(n, b)
        if hasattr(value, "item") and not isinstance(value, (int, float, str)):
            value = value.item()  # a tensor or array of one element
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError(f"compare must return an int, a float or a text, not {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        return value


def load(paths):
    """Loads the metrics. Also returns what is wrong with the first unusable one, or None."""
    metrics = []
    for path in paths:
        with Caught() as caught:
            metrics.append(Metric(path))
        if caught.error:
            return [], f"{path}: {caught.error}"
    return metrics, None


def torch_tensors():
    """Makes tensors as the functions expect them: of torch, bfloat16 and float8 as float32, without dimensions of 1."""
    import torch

    def make(head, data):
        dtype = getattr(torch, head["dtype"])
        tensor = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        tensor = tensor.reshape(head["shape"]).squeeze()
        if dtype.is_floating_point and (dtype == torch.bfloat16 or dtype.itemsize == 1):
            tensor = tensor.to(torch.float32)
        # NaN and infinities stand at the same places on both sides; they count as 0, as in the other columns.
        if tensor.ndim > 0 and (dtype.is_floating_point or dtype.is_complex):
            tensor = torch.where(torch.isfinite(tensor), tensor, torch.zeros_like(tensor))
        return tensor

    return make, torch.no_grad()


def read_exactly(stream, size):
    """Reads exactly `size` bytes; exits if the command has ended."""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        got = stream.readinto(view[at:])
        if not got:
            raise SystemExit(0)
        at += got
    return data


def serve(metrics, stream):
    """Answers requests until the command ends."""
    make, no_grad = torch_tensors()
    with no_grad:
        while True:
            line = stream.readline()
            if not line:
                return
            head = json.loads(line)
            data = [read_exactly(stream, head[side]["bytes"]) for side in ("n", "b")]
            n, b = (make(head[side], buffer) for side, buffer in zip(("n", "b"), data))
            cells, errors = [], []
            for metric in metrics:
                cell = FAILED
                with Caught() as caught:
                    cell = metric.cell(n, b)
                cells.append(cell)
                errors.append(caught.error and f"{metric.column}: {caught.error}")
            stream.write(json.dumps({"cells": cells, "errors": errors}).encode() + b"\n")
            stream.flush()


def main(paths):
    """Runs the process."""
    stream = socket.socket(fileno=os.dup(0)).makefile("rwb")
    sys.stdout = sys.stderr  # what the functions print is not for the command
    metrics, wrong = load(paths)
    if not wrong and importlib.util.find_spec("torch") is None:
        metrics, wrong = [], f"{sys.executable} has no torch, which the functions get their tensors from"
    answer = {"error": wrong} if wrong else {"columns": [metric.column for metric in metrics]}
    stream.write(json.dumps(answer).encode() + b"\n")
    stream.flush()
    if metrics:
        serve(metrics, stream)


if __name__ == "__main__":
    main(sys.argv[1:])

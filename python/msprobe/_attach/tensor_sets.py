"""The tensors of one step and rank as files: `DIR/step_N/rank_R/NAME.safetensors`; read also as .npy and .npz files.

Needs no framework. A tensor is a name, the type as safetensors writes it, a shape and its bytes.
"""

import ctypes
import json
import math
import os
import re
import tempfile
from typing import Any, NamedTuple, Optional

SIZES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
SIZES |= {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}
_NUMPY = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8"}
_NUMPY |= {"u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "b1": "BOOL"}
_LONGEST_HEADER = 100_000_000


class SetError(Exception):
    """What is wrong with files that are replayed: what, where, next step."""


class Stored(NamedTuple):
    """A tensor as it lies in a file."""

    dtype: str
    shape: tuple
    data: Any  # bytes-like, in the order of the machine


def step_directory(root: str, step: int, rank: int) -> str:
    """Returns where the files of a step and rank lie."""
    return os.path.join(root, f"step_{step}", f"rank_{rank}")


def bytes_at(address: int, size: int) -> Any:
    """Returns a view of memory as bytes; it is valid as long as the memory."""
    return (ctypes.c_char * size).from_address(address) if size else b""


def write(path: str, tensors: dict, metadata: dict) -> None:
    """Writes named tensors (`Stored`) as a file of safetensors: whole or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    header: dict = {"__metadata__": {key: str(value) for key, value in metadata.items()}}
    at = 0
    for name, tensor in tensors.items():
        size = math.prod(tensor.shape) * SIZES[tensor.dtype]
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o750, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".tmp", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o640)
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in tensors.values():
                file.write(tensor.data)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def read(path: str) -> tuple:
    """Reads a file of safetensors; returns its tensors by name and its metadata.

    Raises:
        SetError: It is not one, or was cut off.
    """
    try:
        with open(path, "rb") as file:
            whole = file.read()
    except OSError as error:
        raise SetError(f"{path} cannot be read ({error.strerror}): check the path") from error
    size = int.from_bytes(whole[:8], "little") if len(whole) >= 8 else -1
    if not 0 <= size <= min(len(whole) - 8, _LONGEST_HEADER):
        raise SetError(f"{path} is no whole file of safetensors: save it again")
    tensors: dict = {}
    try:
        header = json.loads(whole[8 : 8 + size])
        metadata = dict(header.pop("__metadata__", {}))
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            shape = tuple(int(length) for length in entry["shape"])
            expected = math.prod(shape) * SIZES[entry["dtype"]]
            if min(shape, default=0) < 0 or not 0 <= first <= last <= len(whole) - 8 - size or last - first != expected:
                raise SetError(f"{path}: {name} does not lie in the file: save it again")
            tensors[name] = Stored(entry["dtype"], shape, memoryview(whole)[8 + size + first : 8 + size + last])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SetError(f"{path} has a header that cannot be read ({error}): save it again") from error
    return tensors, metadata


def of_array(array: Any) -> Optional[Stored]:
    """Returns an array of numpy as a tensor; None for types that are none."""
    kind = _NUMPY.get(f"{array.dtype.kind}{array.dtype.itemsize}")
    return Stored(kind, tuple(array.shape), array.tobytes()) if kind else None


def read_directory(directory: str, kind: str, number: int = 0) -> tuple:
    """Reads what a step and rank hold of a kind, "batch" or "grads": our file, else .npz and .npy files of any names.

    Raises:
        SetError: A file is damaged, or of a type that is no tensor.
    """
    own = os.path.join(directory, _file_name(kind, number))
    if os.path.exists(own):
        return read(own)
    if number or any(_OWN.fullmatch(name) for name in os.listdir(directory)):
        raise SetError(f"{directory} holds no {_file_name(kind, number)}: save it again")
    import numpy

    tensors: dict = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if not name.endswith((".npy", ".npz")):
            continue
        try:
            loaded = numpy.load(path, allow_pickle=False)
            arrays = {name[:-4]: loaded} if name.endswith(".npy") else dict(loaded.items())
        except (OSError, ValueError, EOFError, KeyError) as error:
            raise SetError(f"{path} cannot be read ({error}): save it again") from error
        for key, array in arrays.items():
            stored = of_array(array.astype(array.dtype.newbyteorder("="), copy=False))
            if stored is None:
                raise SetError(f"{path} holds {array.dtype}, which is no type of a tensor: save numbers")
            tensors[key] = stored
    if not tensors:
        raise SetError(f"{directory} holds no {_file_name(kind, number)} and no .npy or .npz files: check the path")
    return tensors, {}


def _file_name(kind: str, number: int) -> str:
    return f"{kind}_{number}.safetensors" if number else f"{kind}.safetensors"


_OWN = re.compile(r"(?:batch|grads)(?:_\d+)?\.safetensors")


def file_of(root: str, step: int, rank: int, kind: str, number: int = 0) -> str:
    """Returns the path of the file that write() is given: `number` counts the batches or optimizers of a step."""
    return os.path.join(step_directory(root, step, rank), _file_name(kind, number))


def list_steps(root: str, rank: int, kind: str) -> list:
    """Lists (step, number) of what is saved of a rank, in order.

    Raises:
        SetError: There is nothing.
    """
    try:
        steps = sorted(int(found[1]) for name in os.listdir(root) if (found := re.fullmatch(r"step_(\d+)", name)))
    except OSError as error:
        raise SetError(f"{root} cannot be read ({error.strerror}): check the path") from error
    found: list = []
    for step in steps:
        directory = step_directory(root, step, rank)
        if not os.path.isdir(directory):
            raise SetError(f"{directory} is missing: replay with as many ranks as were saved")
        numbers = [
            int(match[1] or 0)
            for name in os.listdir(directory)
            if (match := re.fullmatch(rf"{kind}(?:_(\d+))?\.safetensors", name))
        ]
        found += [(step, number) for number in sorted(numbers or [0])]
    if not found:
        raise SetError(f"{root} holds no step_0/rank_{rank}: give the directory that was saved")
    return found


def read_names(path: str) -> dict:
    """Reads a map of names as `msprobe ckpt compare --map-out` writes it: the name here (b) to the saved name (a).

    Raises:
        SetError: It holds no pair.
    """
    names: dict = {}
    saved = ""
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                match = re.match(r"\s*(?:- )?(a|b):\s*(.*?)\s*$", line)
                if match:
                    text = json.loads(match[2]) if match[2].startswith('"') else match[2].strip("'")
                    if match[1] == "a":
                        saved = text
                    else:
                        names[text] = saved
    except (OSError, ValueError) as error:
        raise SetError(f"{path} cannot be read ({error}): see 'msprobe ckpt compare --map-out'") from error
    if not names:
        raise SetError(f"{path} holds no pair of a and b: see 'msprobe ckpt compare --map-out'")
    return names

"""Calls of an online check as frames, and as a dump that acc_check reads.

A frame of a call has {"call", "step", "seq", "forward", "backward", "tensors": [{"name", "dtype", "shape"}]}: the two entries of
dump.json, and the tensors that the body holds. Of a dump that a training leaves, numbers are read and nothing else: a tensor's file is
an archive whose one record `data/0` has them.
"""

import json
import os
import re
import struct
import zipfile
from typing import Any, Optional

from _online_wire import WireError, number

# Bytes of an element, and the type's name in a safetensors file.
DTYPES = {
    "torch.float64": (8, "F64"),
    "torch.float32": (4, "F32"),
    "torch.float16": (2, "F16"),
    "torch.bfloat16": (2, "BF16"),
    "torch.int64": (8, "I64"),
    "torch.int32": (4, "I32"),
    "torch.int16": (2, "I16"),
    "torch.int8": (1, "I8"),
    "torch.uint8": (1, "U8"),
    "torch.bool": (1, "BOOL"),
    "torch.complex64": (8, "C64"),
}
_CALL = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){1,20}")
_TENSOR = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.~-]{0,200}\.safetensors")
_MOST_TENSORS, _MOST_DIMENSIONS = 4096, 64
_ENDING = ".pt"


def check_call(header: dict, body: bytes) -> None:
    """Refuses a call that is not what its frame says, before it is acknowledged.

    Args:
        header: The header of its frame.
        body: The bytes of its tensors.

    Raises:
        WireError: Something does not fit.
    """
    name = header.get("call")
    if not isinstance(name, str) or len(name) > 200 or not _CALL.fullmatch(name):
        raise WireError("a call has no name")
    number(header, "seq"), number(header, "step")
    if not isinstance(header.get("forward"), dict) or not isinstance(header.get("backward"), (dict, type(None))):
        raise WireError(f"{name} has no entry")
    tensors = header.get("tensors")
    if not isinstance(tensors, list) or len(tensors) > _MOST_TENSORS:
        raise WireError(f"{name} has no list of tensors")
    if sum(_bytes_of(entry) for entry in tensors) != len(body):
        raise WireError(f"the tensors of {name} do not fill their frame")


def _bytes_of(entry: Any) -> int:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not _TENSOR.fullmatch(entry["name"]):
        raise WireError("a tensor has no name")
    shape = entry.get("shape")
    plain = isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS
    if not plain or any(type(size) is not int or not 0 <= size < 1 << 40 for size in shape):
        raise WireError(f"{entry['name']} has no shape")
    if entry.get("dtype") not in DTYPES:
        raise WireError(f"{entry['name']} has a type that is not sent")
    count = DTYPES[entry["dtype"]][0]
    for size in shape:
        count *= size
        if count >= 1 << 40:
            raise WireError(f"{entry['name']} is too large")
    return count


class DumpWriter:
    """A dump.json and its tensors, of the calls of one step."""

    def __init__(self, folder: str) -> None:
        """Makes the directories."""
        self._folder, self._entries = folder, {}
        os.makedirs(os.path.join(folder, "dump_tensor_data"), mode=0o750)

    def add(self, header: dict, body: bytes) -> None:
        """Writes the tensors of a call.

        Args:
            header: As check_call() has let it pass.
            body: The bytes of its tensors.
        """
        at = 0
        for entry in header["tensors"]:
            size = _bytes_of(entry)
            described = {"dtype": DTYPES[entry["dtype"]][1], "shape": entry["shape"], "data_offsets": [0, size]}
            text = json.dumps({"value": described}).encode()
            text += b" " * (-len(text) % 8)
            with open(os.path.join(self._folder, "dump_tensor_data", entry["name"]), "wb") as file:
                file.write(struct.pack("<Q", len(text)) + text + body[at : at + size])
            at += size
        for side in ("forward", "backward"):
            if header.get(side) is not None:
                self._entries[f"{header['call']}.{side}"] = header[side]

    def close(self) -> str:
        """Writes dump.json, and returns its path."""
        path = os.path.join(self._folder, "dump.json")
        dump = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": self._entries}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dump, file, indent=1)
        return path


class RecordedCalls:
    """The calls of a step that a training has written."""

    def __init__(self, folder: str, backward: bool) -> None:
        """Reads dump.json.

        Args:
            folder: Its directory.
            backward: Whether the gradients are sent, too.

        Raises:
            OSError: It cannot be read.
            ValueError: It is damaged.
        """
        self._folder = folder
        with open(os.path.join(folder, "dump.json"), encoding="utf-8") as file:
            data = json.load(file).get("data") or {}
        self._data = data
        ends = ".forward"
        self.names = [
            name[: -len(ends)] for name in data if name.endswith(ends) and _CALL.fullmatch(name) and len(name) <= 200
        ]
        self._backward = backward

    def frame(self, name: str) -> tuple[dict, tuple]:
        """Returns the header of a call, without "seq" and "step", and the bytes of its tensors.

        Args:
            name: One of `names`.

        Raises:
            OSError: A file cannot be read.
        """
        tensors: list = []
        bodies: list = []
        sides = {}
        for side in ("forward", "backward"):
            entry = self._data.get(f"{name}.{side}") if side == "forward" or self._backward else None
            sides[side] = self._with_files(entry, tensors, bodies) if entry is not None else None
        return {"call": name, **sides, "tensors": tensors}, tuple(bodies)

    def _with_files(self, value: Any, tensors: list, bodies: list) -> Any:
        """A copy of an entry; the names of files that are not sent become null."""
        if isinstance(value, list):
            return [self._with_files(part, tensors, bodies) for part in value]
        if not isinstance(value, dict):
            return value
        copy = {key: self._with_files(part, tensors, bodies) for key, part in value.items()}
        if isinstance(copy.get("data_name"), str):
            copy["data_name"] = self._take(copy, tensors, bodies)
        return copy

    def _take(self, leaf: dict, tensors: list, bodies: list) -> Optional[str]:
        file = leaf["data_name"]
        name = file[: -len(_ENDING)] + ".safetensors"
        described = {"name": name, "dtype": leaf.get("dtype"), "shape": leaf.get("shape")}
        try:
            size = _bytes_of(described)
        except WireError:
            return None
        numbers = numbers_of(os.path.join(self._folder, "dump_tensor_data", file))
        if numbers is None or len(numbers) != size or not file.endswith(_ENDING) or "/" in file:
            return None
        tensors.append(described)
        bodies.append(numbers)
        return name


def numbers_of(path: str) -> Optional[bytes]:
    """Returns the numbers of a tensor's file; None where it is not the archive of one tensor.

    Args:
        path: The file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            records = [entry for entry in archive.infolist() if "/data/" in entry.filename]
            if len(records) != 1 or records[0].compress_type != zipfile.ZIP_STORED:
                return None
            return archive.read(records[0])
    except (OSError, zipfile.BadZipFile):
        return None

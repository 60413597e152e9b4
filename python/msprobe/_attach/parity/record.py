"""The record of one rank: `tensors.bin`, one tensor behind the other, and `record.json`, which says what they are."""

import json
import os
from typing import Any, Optional

import torch

from ..torch_values import local

_TYPES = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


class Record:
    """Tensors are written as they come, so that a step needs no more memory than its largest one."""

    def __init__(self, directory: str):
        os.makedirs(directory, mode=0o750, exist_ok=True)
        self._directory = directory
        self._file = open(os.path.join(directory, "tensors.bin"), "wb")
        self._at = 0
        self._entries: list = []
        self._facts: dict = {}
        self._notes: dict = {}

    def add(self, phase: str, step: int, name: str, tensor: torch.Tensor, place: Optional[dict] = None) -> None:
        """Adds a tensor: `phase` of the step, its name, and what is known of its place in a whole."""
        plain = local(tensor)
        kind = _TYPES.get(plain.dtype)
        if kind is None or plain.is_quantized:
            self.note("a type that is not compared", f"{phase} {name}")
            return
        if place and "odd" in place:
            self.note("its placement is no sum and no part", f"{phase} {name}")
            return
        plain = plain.resolve_conj().resolve_neg().cpu().contiguous()
        size = plain.numel() * plain.element_size()
        self._file.write(plain.reshape(-1).view(torch.uint8).numpy().data if size else b"")
        entry = {"phase": phase, "step": step, "name": name, "dtype": kind, "shape": list(plain.shape), "at": self._at}
        self._entries.append(entry | (place or {}))
        self._at += size

    def fact(self, step: int, name: str, value: Any) -> None:
        """Notes a number of a step, such as the norm that clipping has computed."""
        self._facts.setdefault(str(step), {}).setdefault(name, []).append(value)

    def note(self, why: str, what: str) -> None:
        """Notes what is not compared, and why."""
        found = self._notes.setdefault(why, [])
        if what not in found:
            found.append(what)

    def write(self, head: dict) -> None:
        """Closes the files; without record.json a record is not whole."""
        self._file.close()
        result = {**head, "facts": self._facts, "notes": self._notes, "entries": self._entries}
        path = os.path.join(self._directory, "record.json")
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(f"{path}.part", path)

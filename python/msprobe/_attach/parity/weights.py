"""Gives a reference the weights that the ranks began with, put together from their records, unless it has made the same ones."""

import json
import math
import os
from typing import Any, Optional

import torch

from .engines import reload_parameters, whole_parameter
from .places import is_fsdp, parameter_place

_TYPES = {name: getattr(torch, name) for name in ("float64", "float32", "float16", "bfloat16")}


def give_weights(directory: str, roots: list, names: Any, record: Any) -> None:
    """Copies the weights of the ranks into the models: of each stage of a pipeline, where less than half are equal as they are.

    Those that are constant, such as biases of zero, tell nothing: every start makes them alike.
    """
    held = _Held(directory)
    same: dict = {}  # stage -> whether each parameter is equal
    pairs = []
    for root in roots:
        for path, module in root.named_modules():
            for own, parameter in module._parameters.items():
                if parameter is None or parameter.dtype not in _TYPES.values():
                    continue
                name = names.of(root, f"{path}.{own}" if path else own)
                place = parameter_place(module, name, parameter, is_fsdp(root))
                with whole_parameter(parameter) as whole:
                    wanted = held.part(name, place, list(whole.shape if not place else _local(whole).shape))
                    if wanted is None:
                        record.note("weights of the ranks that do not fit together here", name)
                        continue
                    stage = held.stage(name)
                    if not _is_constant(wanted):
                        equal = torch.equal(_local(whole).detach().cpu().float(), wanted.float())
                        same.setdefault(stage, []).append(equal)
                pairs.append((stage, parameter, wanted))
    given = {stage for stage, equal in same.items() if sum(equal) * 2 < len(equal)}
    if not given:
        record.fact(0, "weights", "own")
        return
    for stage, parameter, wanted in pairs:
        if stage in given:
            with torch.no_grad(), whole_parameter(parameter) as whole:
                _local(whole).copy_(wanted.to(_local(whole).dtype))
    record.fact(0, "weights", "given")
    trouble = reload_parameters(roots)
    if trouble:
        record.note(trouble, "all")


def _is_constant(tensor: torch.Tensor) -> bool:
    return tensor.numel() == 0 or bool((tensor == tensor.reshape(-1)[0]).all())


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class _Held:
    """The parameters that the records of all ranks hold."""

    def __init__(self, directory: str):
        self._pieces: dict = {}
        for rank in sorted(os.listdir(directory), key=lambda name: (len(name), name)):
            path = os.path.join(directory, rank, "record.json")
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as file:
                head = json.load(file)
            data = os.path.join(directory, rank, "tensors.bin")
            for entry in head["entries"]:
                if entry["phase"] == "parameter" and entry["step"] == 0 and entry["dtype"] in _TYPES:
                    self._pieces.setdefault(entry["name"], []).append((head, data, entry))

    def stage(self, name: str) -> int:
        """Returns the stage of the pipeline that has a parameter: of several the first."""
        stages = [_stage_of(head) for head, _, _ in self._pieces.get(name, [])]
        return min(stages, default=0)

    def part(self, name: str, place: dict, shape: list) -> Optional[torch.Tensor]:
        """Returns the part of a parameter that a place needs; None where it is not there or does not fit."""
        whole = self._whole(name, place.get("whole", shape))
        if whole is None or not place:
            return whole if whole is not None and list(whole.shape) == shape else None
        parts = []
        for offset, size in place["boxes"]:
            box = whole
            for dim, (first, length) in enumerate(zip(offset, size)):
                box = box.narrow(dim, first, length)
            parts.append(box)
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def _whole(self, name: str, shape: list) -> Optional[torch.Tensor]:
        pieces = self._pieces.get(name, [])
        if not pieces:
            return None
        if all(entry.get("whole") == shape for _, _, entry in pieces):
            return _from_boxes(pieces, shape)
        tensors = [_read(data, entry) for _, data, entry in pieces]
        if list(tensors[0].shape) == shape:
            return tensors[0]
        return _joined(pieces, tensors, shape)


def _stage_of(head: dict) -> int:
    group = head["axes"].get("pp", [])
    return group.index(head["rank"]) if head["rank"] in group else 0


def _from_boxes(pieces: list, shape: list) -> Optional[torch.Tensor]:
    _, _, first = pieces[0]
    whole = torch.full(shape, math.nan, dtype=_TYPES[first["dtype"]])
    for _, data, entry in reversed(pieces):
        tensor, at = _read(data, entry), 0
        several = len(entry["boxes"]) > 1
        for offset, size in entry["boxes"]:
            part = tensor
            if several:  # one behind the other along the first dimension
                part, at = tensor.narrow(0, at, size[0]), at + size[0]
            view = whole
            for dim, (begin, length) in enumerate(zip(offset, size)):
                view = view.narrow(dim, begin, length)
            view.copy_(part)
    return None if bool(torch.isnan(whole).any()) else whole


def _joined(pieces: list, tensors: list, shape: list) -> Optional[torch.Tensor]:
    """Of parts without a place: those of one tensor-parallel group one behind the other, where their sizes add up."""
    group = pieces[0][0]["axes"].get("tp", [head["rank"] for head, _, _ in pieces])
    own = {head["rank"]: tensor for (head, _, _), tensor in zip(pieces, tensors)}
    parts = [own[rank] for rank in group if rank in own]
    for dim, length in enumerate(shape):
        if sum(part.shape[dim] for part in parts) == length:
            whole = torch.cat(parts, dim)
            if list(whole.shape) == shape:
                return whole
    return None


def _read(path: str, entry: dict) -> torch.Tensor:
    kind = _TYPES[entry["dtype"]]
    count = math.prod(entry["shape"])
    if count == 0:
        return torch.empty(entry["shape"], dtype=kind)
    with open(path, "rb") as file:
        file.seek(entry["at"])
        data = bytearray(file.read(count * kind.itemsize))
    return torch.frombuffer(data, dtype=kind).reshape(entry["shape"])

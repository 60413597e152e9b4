"""Batches and gradients of MindSpore scripts: saved, or saved ones put in their place (batches.py, gradients.py)."""

import functools
from collections import deque
from typing import Any, Optional

import mindspore
from mindspore import nn
from mindspore.dataset.engine import iterators

from .._capture.log import logger
from ..mindspore import cell_hooks
from . import tensor_sets
from .cell_steps import is_optimizer
from .client import Client
from .exchange import Names, Passing, Refused, Saved, rank_of_process, saves_or_warns
from .norm_table import NormRow, write_table
from .request import Request
from .tensor_sets import Stored


class CellExchange(Passing):
    """Watches the iterators of data sets and the calls of optimizers."""

    def __init__(self, request: Request, inner: Client):
        super().__init__(inner, request.numbers(()))
        self._request = request
        self._names = Names(request.names)
        self._saved: dict = {}  # by kind
        self._waiting: deque = deque()
        self._datasets: list = []
        self._number = 0  # of the optimizer within the step
        self._hooked: list = []
        self._on = {"batch": bool(request.save_batches), "grads": bool(request.save_grads)}
        if request.save_batches or request.replay_batches:
            self._watch_datasets()
        if request.save_grads or request.replay_grads:
            self._watch_optimizers()

    def begin(self, roots: list) -> None:
        self._number = 0
        super().begin(roots)
        if self._waiting:
            leaves = self._waiting.popleft()
            if self._on["batch"] and self.saves_now():
                self.guarded(lambda: self._save_batch(leaves))

    # ---- batches

    def _save_batch(self, leaves: dict) -> None:
        self._on["batch"] = self._save("batch", self._request.save_batches, leaves, 0, 1.0)

    def _watch_datasets(self) -> None:
        original = iterators.Iterator.__next__

        @functools.wraps(original)
        def fetch(this: Any) -> Any:
            batch = original(this)
            return self.guarded(lambda: self._fetched(this, batch), batch)

        iterators.Iterator.__next__ = fetch

    def _fetched(self, iterator: Any, batch: Any) -> Any:
        dataset = getattr(iterator, "dataset", iterator)
        if not any(known is dataset for known in self._datasets):
            if self.step >= 0:
                return batch  # of a validation
            self._datasets.append(dataset)
        names = list(batch) if isinstance(batch, dict) else list(iterator.get_col_names())
        leaves = dict(zip(names, batch.values() if isinstance(batch, dict) else batch))
        if self._request.replay_batches:
            leaves = self._exchanged("batch", self._request.replay_batches, leaves)
        self._waiting.append(leaves)
        return leaves if isinstance(batch, dict) else type(batch)(leaves.values())

    def _exchanged(self, kind: str, root: str, leaves: dict) -> dict:
        if kind not in self._saved:
            self._saved[kind] = Saved(root, rank_of_process(), kind)
        source = self._saved[kind]
        place = source.next() if kind == "batch" else source.of_step(self.step, self._number)
        if place is None:
            return leaves
        where, tensors, metadata = place
        pairs = self._names.pair(list(leaves), tensors, where)
        factor = self._request.loss_scale / float(metadata.get("loss_scale", 1.0)) if kind == "grads" else 1.0
        left = sorted(set(leaves) - set(pairs))
        if left:
            logger.warning("replay of %s: %s keep what the script has.", kind, ", ".join(left[:6]))
        return {
            name: _like(tensors[pairs[name]], own, name, where, factor) if name in pairs else own
            for name, own in leaves.items()
        }

    # ---- gradients

    def _watch_optimizers(self) -> None:
        original = nn.Cell._self_check

        @functools.wraps(original)
        def check(cell: Any) -> None:
            original(cell)
            if is_optimizer(cell) and not any(known is cell for known in self._hooked):
                self._hooked.append(cell)
                cell_hooks.before(cell, lambda *of: self.guarded(lambda: self._about_to_step(*of)))

        nn.Cell._self_check = check

    def _about_to_step(self, optimizer: Any, args: tuple) -> Optional[tuple]:
        gradients = args[0] if args and isinstance(args[0], (tuple, list)) else None
        if gradients is None or self.step < 0:
            return None
        names = [parameter.name for parameter in optimizer.parameters]
        leaves = dict(zip(names, gradients))
        if self._on["grads"] and self.saves_now():
            scale = self._request.loss_scale
            self._on["grads"] = self._save("grads", self._request.save_grads, leaves, self._number, scale)
        if self._request.replay_grads:
            leaves = self._exchanged("grads", self._request.replay_grads, leaves)
        self._number += 1
        return (tuple(leaves.values()), *args[1:]) if self._request.replay_grads else None

    # ---- files

    def _save(self, kind: str, root: str, leaves: dict, number: int, scale: float) -> bool:
        import numpy

        tensors, rows = {}, []
        for name, leaf in leaves.items():
            array = _array(leaf)
            stored = None if array is None else tensor_sets.of_array(array)
            if stored is None:
                continue
            tensors[name] = stored
            if kind == "grads":
                norm = float(numpy.linalg.norm(array.astype(numpy.float64).ravel())) / scale
                rows.append(NormRow(name, array, norm, None))
        rank = rank_of_process()
        path = tensor_sets.file_of(root, self.step, rank, kind, number)
        metadata = {"kind": kind, "step": self.step, "rank": rank, "number": number, "loss_scale": scale}
        return saves_or_warns(path, tensors, metadata) and (kind == "batch" or write_table(path, rows, scale))


def _array(value: Any) -> Any:
    if not isinstance(value, mindspore.Tensor):
        return value if hasattr(value, "dtype") and hasattr(value, "tobytes") else None
    if value.dtype == mindspore.bfloat16:
        value = value.astype(mindspore.float32)  # numpy has no such type
    return value.asnumpy()


def _like(stored: Stored, own: Any, name: str, where: str, factor: float) -> Any:
    import numpy

    if tuple(stored.shape) != tuple(own.shape):
        raise Refused(
            f"{where}: {name} has the shape {list(stored.shape)}, and {list(own.shape)} in the script: replay with the "
            "batch size, length and layout that it was saved with"
        )
    array = _numbers(stored)
    if factor != 1.0:
        array = array * factor
    if not isinstance(own, mindspore.Tensor):
        cast = array.astype(own.dtype)
        _check_whole(cast, array, name, where)
        return cast
    if own.dtype == mindspore.bfloat16:
        return mindspore.Tensor(array.astype(numpy.float32)).astype(mindspore.bfloat16)
    kind = mindspore.dtype_to_nptype(own.dtype)
    cast = array.astype(kind)
    _check_whole(cast, array, name, where)
    return mindspore.Tensor(cast, own.dtype)


def _check_whole(cast: Any, array: Any, name: str, where: str) -> None:
    if cast.dtype.kind in "iub" and not (cast.astype(array.dtype) == array).all():
        raise Refused(f"{where}: {name} does not fit into {cast.dtype}: save it in that type")


def _numbers(stored: Stored) -> Any:
    import numpy

    if stored.dtype == "BF16":
        wide = numpy.frombuffer(stored.data, numpy.uint16).astype(numpy.uint32) << 16
        return wide.view(numpy.float32).reshape(stored.shape)
    kinds = {"BOOL": "b1", "F64": "f8", "F32": "f4", "F16": "f2"}
    kind = kinds.get(stored.dtype, f"{stored.dtype[0].lower()}{tensor_sets.SIZES[stored.dtype]}")
    return numpy.frombuffer(stored.data, kind).reshape(stored.shape)

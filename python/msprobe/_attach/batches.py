"""`msprobe run --save-batches` and `--replay-batches`: the batch of each step, from the data loader or from the model's call.

From a data loader a batch is taken as the script gets it. Other iterators and functions cannot be seen from outside; what they
gave is found where the model is called: its arguments, and the variables of the function that calls it (labels, masks).
"""

import functools
from collections import deque
from typing import Any

import torch
from torch.utils.data import dataloader

from .._capture.log import logger
from ..pytorch.hook_points import HookSet
from . import tensor_sets
from .client import Client
from .exchange import Names, Passing, Saved, rank_of_process, refuse_on, saves_or_warns
from .forward_call import arguments_of, users_frames
from .joined_batches import Joined
from .request import Request
from .tensor_sets import Stored
from .torch_values import leaves_of, like, rebuilt, stored

_DEEPEST = 3
_MOST_ITEMS = 64


class Batches(Passing):
    """Saves the batch of each step, or puts a saved one in its place."""

    def __init__(self, request: Request, inner: Client):
        super().__init__(inner, request.numbers(()))
        self._directory = request.save_batches
        self._replay_from = request.replay_batches
        self._join = [int(rank) for rank in request.join_ranks or ()]
        self._from_model = request.batches_from == "model"
        self._names = Names(request.names)
        self._saved: Any = None
        self._waiting: deque = deque()  # leaves of batches that were fetched and that no forward has consumed
        self._datasets: list = []  # that gave batches before the first step: those of the training
        self._number = 0  # of the batch within the step
        self._roots: list = []  # whose further forwards in a step are watched
        self._first_call = False
        self._hooks = HookSet()
        self._told: set = set()
        if not self._from_model:
            self._watch_loaders()

    def begin(self, roots: list) -> None:
        self._number = 0
        self.step += 1
        # Nothing is recorded yet of this step.
        self.guarded(lambda: self._consume(roots[0]))
        self.step -= 1
        super().begin(roots)
        if not any(known is roots[0] for known in self._roots):
            self._roots.append(roots[0])
            self._hooks.before(roots[0], self._called_again)
            self._first_call = False
        else:
            self._first_call = True

    def _called_again(self, root: torch.nn.Module, args: tuple) -> None:
        """Handles the forwards of a step behind its first: micro batches."""
        if self._first_call:
            self._first_call = False
        elif torch.is_grad_enabled() and root.training:
            self._number += 1
            self.guarded(lambda: self._consume(root))

    # ---- data loaders

    def _watch_loaders(self) -> None:
        kind = dataloader._BaseDataLoaderIter
        original = kind.__next__

        @functools.wraps(original)
        def fetch(this: Any) -> Any:
            batch = original(this)
            return self.guarded(lambda: self._fetched(this, batch), batch)

        kind.__next__ = fetch

    def _fetched(self, iterator: Any, batch: Any) -> Any:
        dataset = getattr(iterator, "_dataset", None)
        if not any(known is dataset for known in self._datasets):
            if self.step >= 0:
                return batch  # of a validation
            self._datasets.append(dataset)
        if self._replay_from:
            batch = self._exchanged(batch)
        self._waiting.append(leaves_of(batch))
        return batch

    def _exchanged(self, batch: Any) -> Any:
        place = self._source().next()
        if place is None:
            return batch
        where, tensors, _ = place
        here = leaves_of(batch)
        pairs = self._names.pair(list(here), tensors, where)
        self._tell_unpaired(here, tensors, pairs)
        return rebuilt(
            batch, lambda path, old: self._put(tensors[pairs[path]], old, path, where) if path in pairs else old
        )

    def _source(self) -> Any:
        if self._saved is None and self._join:
            self._saved = refuse_on(Joined, self._replay_from, self._join)
        if self._saved is None:
            self._saved = Saved(self._replay_from, rank_of_process(), "batch")
        return self._saved

    def _put(self, value: Stored, old: Any, name: str, where: str) -> Any:
        joined = bool(self._join)
        if isinstance(old, torch.Tensor):
            return like(value, old, name, where, joined)
        return like(value, torch.from_numpy(old.copy()), name, where, joined).numpy()

    def _tell_unpaired(self, here: Any, saved: Any, pairs: dict) -> None:
        for what, names in (
            ("stay as the script has them", set(here) - set(pairs)),
            ("are not used", set(saved) - set(pairs.values())),
        ):
            new = sorted(names - self._told)
            if new:
                self._told.update(new)
                logger.warning("replay of batches: %s %s.", ", ".join(new), what)

    # ---- consumption

    def _consume(self, root: torch.nn.Module) -> None:
        if self._datasets and not self._from_model:
            leaves = self._take(root)
        else:
            leaves = _of_call(root)
            if self._replay_from and leaves:
                self._exchange_in_place(leaves)
        if self._directory and leaves and self.saves_now():
            self._save(leaves)

    def _take(self, root: torch.nn.Module) -> dict:
        """Returns the fetched batch that this forward consumes: the one whose memory it is given, else the oldest."""
        args, kwargs = arguments_of(root)
        given = {_address(value) for value in leaves_of([args, kwargs]).values() if isinstance(value, torch.Tensor)}
        for place, leaves in enumerate(self._waiting):
            if any(_address(leaf) in given for leaf in leaves.values() if isinstance(leaf, torch.Tensor)):
                for _ in range(place):
                    self._waiting.popleft()
                break
        return self._waiting.popleft() if self._waiting else {}

    def _exchange_in_place(self, leaves: dict) -> None:
        place = self._source().next()
        if place is None:
            return
        where, tensors, _ = place
        pairs = self._names.pair(list(leaves), tensors, where)
        self._tell_unpaired(leaves, tensors, pairs)
        for name, wanted in pairs.items():
            # The variable gets other memory: what it had may be a part of the data set.
            leaves[name].data = self._put(tensors[wanted], leaves[name], name, where)

    def _save(self, leaves: dict) -> None:
        tensors, keep, left_out = {}, [], []
        for name, leaf in leaves.items():
            found = stored(leaf) if isinstance(leaf, torch.Tensor) else (tensor_sets.of_array(leaf), leaf)
            if found is None or found[0] is None:
                left_out.append(name)
            else:
                tensors[name] = found[0]
                keep.append(found[1])
        new = sorted(set(left_out) - self._told)
        if new:
            self._told.update(new)
            logger.warning("batches: %s cannot be saved: a type that files do not have.", ", ".join(new))
        rank = rank_of_process()
        path = tensor_sets.file_of(self._directory, self.step, rank, "batch", self._number)
        metadata = {"kind": "batch", "step": self.step, "rank": rank, "number": self._number}
        if tensors and not saves_or_warns(path, tensors, metadata):
            self._directory = ""


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else id(tensor)


def _of_call(root: torch.nn.Module) -> dict:
    """Lists the tensors of a model's call by the names that the calling function has for them."""
    args, kwargs = arguments_of(root)
    given = leaves_of({**{f"arg{place}": value for place, value in enumerate(args)}, **kwargs})
    given = {name: value for name, value in given.items() if _is_data(value)}
    first = next((value for value in given.values() if value.dim() > 0), None)
    if first is None:
        return {}
    found: dict = {}
    known: set = set()
    passed = {id(value) for value in given.values()}
    variables = _variables()
    plain = {name: value for name, value in variables.items() if isinstance(value, torch.Tensor)}
    parts = {path: leaf for name, value in variables.items() for path, leaf in _batch_parts(value, name, passed)}
    for name, leaf in {**plain, **parts}.items():
        if _is_data(leaf) and id(leaf) not in known and (id(leaf) in passed or _same_batch(leaf, first)):
            known.add(id(leaf))
            found[name] = leaf
    found.update({name: value for name, value in given.items() if id(value) not in known})
    return found


def _batch_parts(value: Any, path: str, passed: set, deep: int = 0) -> list:
    """Lists the tensors of containers that hold one that the model is given: a dict wholly, of a list its own items."""
    if isinstance(value, dict) or (hasattr(value, "items") and hasattr(value, "__setitem__")):
        leaves = leaves_of(value, path)
        if any(id(leaf) in passed for leaf in leaves.values()):
            return list(leaves.items())
        return []
    if not isinstance(value, (list, tuple)) or deep > _DEEPEST or len(value) > _MOST_ITEMS:
        return []
    own = [(f"{path}.{place}", part) for place, part in enumerate(value)]
    tensors = [(name, part) for name, part in own if isinstance(part, torch.Tensor)]
    found = tensors if any(id(part) in passed for _, part in tensors) else []
    for name, part in own:
        found = found + _batch_parts(part, name, passed, deep + 1)
    return found


def _variables() -> dict:
    for frame in users_frames():
        names = dict(frame.f_locals)
        if frame.f_code.co_name == "<module>":
            names = {name: value for name, value in names.items() if not name.startswith("__")}
        return {name: value for name, value in names.items() if not isinstance(value, torch.nn.Module)}
    return {}


def _is_data(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and not isinstance(value, torch.nn.Parameter)
        and not value.requires_grad
        and value.layout is torch.strided
    )


def _same_batch(tensor: torch.Tensor, first: torch.Tensor) -> bool:
    return tensor.dim() > 0 and tensor.shape[0] == first.shape[0]

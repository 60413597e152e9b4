"""`msprobe certify --resume`: the states of a training at the beginning of each step, straight, killed and resumed.

Roles: `scout` finds when the script saves, `straight` trains on beyond that, `killed` dies right there, `resumed` is the script
started again. Steps are numbered through: the resumed run begins with the step before which the killed one died.
"""

import functools
import gc
import json
import os
import sys
from collections import deque
from typing import Any

import torch
from torch.utils.data import dataloader

from .client import Client
from .digests import Digests
from .ending import Finished, rank_name, write_result
from .forward_call import arguments_of
from .request import Request
from .states import Snapshot
from .tensor_checksum import checksum

_MARK = "saved_after"  # file: how many steps were done when the script saved first
_MOST_ITERATORS = 1000
_PREFETCHED = 16
_DEEPEST_SAMPLER = 8  # samplers around samplers


class Resume(Digests):
    """Takes the states before each step, and what the steps compute as certify does."""

    def __init__(self, request: Request, inner: Client, dump_path: str):
        super().__init__(request, inner, dump_path)
        self._role = request.role
        self._done = request.save_at if request.role == "resumed" else 0  # steps so far, through both runs
        self._before: list = []  # snapshots
        self._saves: list = []
        self._loads = 0
        self._data = _DataLog()
        self._captures = False
        self._torch_states: list = []  # checksums since the last step ended
        self._open = False  # a step has begun and its optimizers have not stepped
        self._awaited = self._saves_inside() if request.role == "killed" else 0
        self._watch_files()

    def begin(self, roots: list) -> None:
        self._roots = list(roots)
        if self._is_last():
            self._snapshot(roots)
        self._finish_if_due()
        self._snapshot(roots)
        if self._role == "killed" and self._done >= self._request.save_at + (1 if self._awaited else 0):
            self._die()
        self._due = self._open = True
        self._losses.clear()
        self._captures = self._role != "killed" and self._done >= self._request.save_at
        if self._captures:
            self._inner.begin(roots)

    def join(self, root: torch.nn.Module, number: int) -> None:
        self._roots.append(root)
        if self._captures:
            self._inner.join(root, number)

    def over(self) -> None:
        if self._captures:
            self._inner.over()
        self._look()
        self._open = False
        self._done += 1
        self._torch_states = self._data.generator_states()

    def close(self) -> None:
        if self._captures:
            self._inner.close()
        self._captures = False

    def wants_roots(self) -> bool:
        return len(self._steps) < 1

    def exit(self) -> None:
        if self._written or os.getpid() != self._pid:
            return
        self._written = True
        self._look()
        if self._before or self._saves:
            write_result(self._request.out, f"{self._role}.{rank_name()}", self._result())

    def _result(self) -> dict:
        found = {"before": self._before, "saves": self._saves, "loads": self._loads, "torch_states": self._torch_states}
        return {**super()._result(), **found, "iterators": self._data.iterators, "first_step": self._first_step()}

    def _first_step(self) -> int:
        return self._request.save_at if self._role == "resumed" else 0

    def _is_last(self) -> bool:
        return self._role != "scout" and 0 < self._request.steps <= self._done - self._request.save_at

    def _finish_if_due(self) -> None:
        if self._role == "scout":
            mark = os.path.join(self._request.out, _MARK)
            # One step later than it was written, so that all ranks see it at the same step.
            if os.path.exists(mark):
                with open(mark, encoding="utf-8") as file:
                    text = file.read()
                if text and self._done > int(text):
                    self.exit()
                    raise Finished
        elif self._is_last():
            self.exit()
            raise Finished

    def _snapshot(self, roots: list) -> None:
        if self._role == "scout":
            return
        batch = _tensors(arguments_of(roots[0]))
        state = {"step": self._done, "batch": [checksum(tensor) for tensor in batch], "fetched": self._data.fetched}
        state["loaded"] = [checksum(tensor) for tensor in self._data.last]
        # Of the steps between, only the batches are asked for. What the first step after the resume and the last one
        # leave shows what a number was for.
        told = (self._first_step(), self._request.save_at, self._request.save_at + 1)
        if self._done in told or self._is_last():
            snapshot = Snapshot(roots, batch + self._data.recent())
            state["states"], state["owners"] = snapshot.kinds, snapshot.owners
            if self._role == "resumed":
                state["states"]["gradient"] = self._gradients()
        self._before.append(state)
        self._torch_states += self._data.generator_states()

    def _die(self) -> None:
        """Ends the process as a kill does: nothing of the script runs any more."""
        self.exit()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    # ---- saves inside of a step

    def _gradients(self) -> dict:
        found = {}
        for number, root in enumerate(self._roots):
            for name, parameter in root.named_parameters():
                if parameter.grad is not None:
                    found[(f"{number}." if number else "") + name] = checksum(parameter.grad)
        return found

    def _is_inside(self) -> bool:
        """Tells whether gradients wait for their optimizer: the script saves between two micro batches of a step."""
        if not self._open or not self._gradients():
            return False
        return any(issubclass(type(value), torch.optim.Optimizer) for value in gc.get_objects())

    def _saves_inside(self) -> int:
        """Returns how often the straight run saved inside of the step before which this one would die."""
        path = os.path.join(self._request.out, f"straight.{rank_name()}.json")
        try:
            with open(path, encoding="utf-8") as file:
                saves = json.load(file).get("saves", [])
        except (OSError, ValueError):
            return 0
        at = [save["inside"] for save in saves if save["step"] == self._request.save_at]
        return len(at) if all(at) else 0

    def _saved_inside(self) -> None:
        """Takes the states where the script saves, in place of those at the beginning of the step."""
        kinds = Snapshot(self._roots, self._data.recent()).kinds
        state = {"step": self._done, "batch": [], "fetched": self._data.fetched, "loaded": [], "inside": True}
        self._before = [entry for entry in self._before if entry["step"] != self._done]
        self._before.append({**state, "states": {**kinds, "gradient": self._gradients()}})
        self._losses.clear()
        here = sum(save["step"] == self._done for save in self._saves)
        if self._role == "killed" and 0 < self._awaited <= here:
            self._die()

    # ---- files

    def _watch_files(self) -> None:
        original, load = torch.save, torch.load

        @functools.wraps(original)
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(obj, f, *args, **kwargs)
            self._has_saved(f)
            return result

        @functools.wraps(load)
        def loading(*args: Any, **kwargs: Any) -> Any:
            self._loads += 1
            return load(*args, **kwargs)

        torch.save = torch.serialization.save = save
        torch.load = torch.serialization.load = loading

    def _has_saved(self, place: Any) -> None:
        if self._done == 0 or os.getpid() != self._pid:
            return  # weights before the first step are no checkpoint of a training
        path = os.fspath(place) if isinstance(place, (str, os.PathLike)) else ""
        inside = self._is_inside()
        self._saves.append({"step": self._done, "path": path, "inside": inside})
        if inside and self._done == self._request.save_at and self._role in ("straight", "killed"):
            self._saved_inside()
        self._torch_states += self._data.generator_states()
        if self._role == "scout":
            try:
                with open(os.path.join(self._request.out, _MARK), "x", encoding="utf-8") as file:
                    json.dump(self._done, file)
            except FileExistsError:
                pass  # another rank, or the next file of the same checkpoint


class _DataLog:
    """The iterators of data loaders: what their making drew from PyTorch's generator, and how many batches they gave."""

    def __init__(self) -> None:
        self.iterators: list = []
        self.fetched = 0  # by the iterator that gave the last batch
        self.last: list = []  # tensors of the last batch
        self._recent: deque = deque(maxlen=_PREFETCHED)
        self._generators: list = []  # that loaders have of their own
        kind = dataloader._BaseDataLoaderIter
        make, fetch = kind.__init__, kind.__next__

        @functools.wraps(make)
        def made(this: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            for own in (loader.generator, getattr(loader.sampler, "generator", None)):
                if isinstance(own, torch.Generator) and not any(own is known for known in self._generators):
                    self._generators.append(own)
            before = self.generator_states()
            make(this, loader, *args, **kwargs)
            sampler, skipped = _order_of(loader)
            entry = {"before": before, "after": self.generator_states(), "fetched": skipped}
            entry["sampler"] = type(sampler).__name__
            entry["draws_order"] = _draws_order(sampler)
            if len(self.iterators) < _MOST_ITERATORS:
                self.iterators.append(entry)
            this._msprobe_entry = entry

        @functools.wraps(fetch)
        def fetching(this: Any) -> Any:
            batch = fetch(this)
            entry = getattr(this, "_msprobe_entry", None)
            if entry is not None:
                entry["fetched"] += 1
                self.fetched = entry["fetched"]
            self.last = _tensors(batch)
            self._recent.append(self.last)
            return batch

        kind.__init__, kind.__next__ = made, fetching

    def recent(self) -> list:
        """Lists the tensors of the batches that the script may still hold: some loaders fetch ahead."""
        return [tensor for batch in self._recent for tensor in batch]

    def generator_states(self) -> list:
        """Lists the states of PyTorch's generator and of those that loaders have of their own."""
        return [checksum(torch.get_rng_state()), *(checksum(own.get_state()) for own in self._generators)]


def _order_of(loader: Any) -> tuple:
    """Returns the sampler that makes the order of a loader, and how many batches those around it leave out."""
    sampler, skipped, inner = None, 0, loader
    for _ in range(_DEEPEST_SAMPLER):
        # Not by truth: an empty sampler is one, too.
        inner = next(
            (i for i in (getattr(inner, n, None) for n in ("batch_sampler", "sampler")) if i is not None), None
        )
        if inner is None:
            break
        sampler = inner
        left_out = getattr(sampler, "skip_batches", 0)  # of accelerate.skip_first_batches()
        skipped += left_out if type(left_out) is int else 0
    return sampler, skipped


def _draws_order(sampler: Any) -> bool:
    """Tells whether a sampler draws its order from the global generator, so that each new iterator has another."""
    return isinstance(sampler, torch.utils.data.RandomSampler) and sampler.generator is None


def _tensors(value: Any) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict) or hasattr(value, "items"):
        return [tensor for key in value for tensor in _tensors(value[key])]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(part)]
    return []

"""What `msprobe run --save-batches`, `--save-grads`, `--replay-batches` and `--replay-grads` have in common."""

import os
import sys
from typing import Any, Callable, Optional

from .. import _core
from .._capture.log import logger
from . import tensor_sets
from .client import Client


class Refused(SystemExit):
    """Ends the script: what it was to be given does not fit."""

    def __init__(self, why: str) -> None:
        sys.stderr.write(f"[msprobe] error: {why}\n")
        super().__init__(3)


def refuse_on(call: Callable, *arguments: Any) -> Any:
    """Calls a function; a file that cannot be used ends the script."""
    try:
        return call(*arguments)
    except tensor_sets.SetError as error:
        raise Refused(str(error)) from None


class Passing(Client):
    """Counts the steps, and passes every moment on to the client it wraps."""

    def __init__(self, inner: Client, steps: frozenset = frozenset()):
        self._inner = inner
        self._steps = steps  # that are saved; all where it is empty
        self.step = -1  # the one that is open or was last
        self.broken = False

    def begin(self, roots: list) -> None:
        self.step += 1
        self._inner.begin(roots)

    def saves_now(self) -> bool:
        """Whether the open step is one of those that are to be saved."""
        return not self._steps or self.step in self._steps

    def guarded(self, call: Callable, otherwise: Any = None) -> Any:
        """Calls a function unseen by a capture; what fails in it does not end the training."""
        if self.broken:
            return otherwise
        try:
            return _core.run_unseen(call)
        except (RuntimeError, ValueError, OSError, TypeError, AttributeError, KeyError) as error:
            self.broken = True
            logger.error(
                "saving and replaying ends here, the run goes on: %s: %s", type(error).__name__, str(error)[:200]
            )
            return otherwise

    def join(self, root: Any, number: int) -> None:
        self._inner.join(root, number)

    def over(self) -> None:
        self._inner.over()

    def close(self) -> None:
        self._inner.close()

    def wants_roots(self) -> bool:
        return self._inner.wants_roots()

    def exit(self) -> None:
        self._inner.exit()


class Saved:
    """What an earlier run has saved of this rank, in the order in which it was consumed."""

    def __init__(self, root: str, rank: int, kind: str):
        self._root, self._rank, self._kind = root, rank, kind
        self._places = refuse_on(tensor_sets.list_steps, root, rank, kind)
        self._at = 0

    def next(self) -> Optional[tuple]:
        """Returns where the next set lies and what it holds; None behind the last."""
        if self._at >= len(self._places):
            if self._at == len(self._places):
                self._at += 1
                logger.warning("%s ends here: the run goes on with what is its own.", self._root)
            return None
        step, number = self._places[self._at]
        self._at += 1
        return self._read(step, number)

    def of_step(self, step: int, number: int) -> Optional[tuple]:
        """Returns the same for a step; None where nothing was saved of it."""
        return self._read(step, number) if (step, number) in self._places else None

    def _read(self, step: int, number: int) -> tuple:
        directory = tensor_sets.step_directory(self._root, step, self._rank)
        tensors, metadata = refuse_on(tensor_sets.read_directory, directory, self._kind, number)
        return f"step {step} in {directory}", tensors, metadata


class Names:
    """Which saved name belongs to which name here."""

    def __init__(self, path: str):
        self._given = refuse_on(tensor_sets.read_names, path) if path else {}

    def pair(self, here: list, saved: Any, where: str) -> dict:
        """Maps names here to saved names: as given, equal, or with the same last part where that is unique.

        Raises:
            Refused: None fits.
        """
        pairs = {}
        last_parts = _unique_last_parts(saved)
        own = _unique_last_parts(here)
        for name in here:
            wanted = self._given.get(name, name)
            part = wanted.rpartition(".")[2]
            if wanted in saved:
                pairs[name] = wanted
            elif part in last_parts and own.get(name.rpartition(".")[2]) == name:
                pairs[name] = last_parts[part]
        if not pairs:
            raise Refused(
                f"{where}: no name fits, saved are {_few(saved)} and the script has {_few(here)}: say which is which "
                "with --names FILE"
            )
        return pairs


def _unique_last_parts(names: Any) -> dict:
    found: dict = {}
    for name in names:
        found.setdefault(name.rpartition(".")[2], []).append(name)
    return {part: full[0] for part, full in found.items() if len(full) == 1}


def _few(names: Any) -> str:
    shown = sorted(names)[:6]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")


def saves_or_warns(path: str, tensors: dict, metadata: dict) -> bool:
    """Writes a set; a disk that is full does not end the training."""
    try:
        tensor_sets.write(path, tensors, metadata)
    except OSError as error:
        logger.error("%s cannot be written (%s): nothing more is saved, the run goes on.", path, error.strerror)
        return False
    return True


def rank_of_process() -> int:
    """Returns the number of this process, before and after its group of processes exists."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    text = os.environ.get("RANK") or os.environ.get("RANK_ID") or "0"
    return int(text) if text.isdigit() else 0

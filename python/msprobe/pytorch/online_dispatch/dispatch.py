"""The mode that sees each operator of a training, and makes its call again on the CPU."""

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ... import _core
from ..._capture.arguments import rank_of_launcher
from ..._capture.files import make_directory
from ..._capture.free_benchmark.calls import FAULTS
from ..._capture.log import logger
from ..._capture.words import say
from ..._compat import distributed_module
from ..device_stats import _disable_current_modes
from . import npy_files, reference
from .arguments import check
from .judged_ops import base_name, is_aten, is_judged, known_names
from .tables import Tables

_MOST_NAMES = 10
_MOST_BYTES = 4 << 30  # of the arguments of a call, which the host keeps two to five times while it is judged


class PtdbgDispatch(TorchDispatchMode):
    """Runs every aten operator of a training again on the CPU, and judges its results by that.

        with PtdbgDispatch(dump_mode="auto", dump_path="out"):
            loss = model(batch)
            loss.backward()

    Writes `msprobe_[tag_]rank{r}_{time}` below `dump_path`: accuracy_checking_result_{time}.csv with a row for each call,
    accuracy_checking_details_{time}.csv with one for each result, and, as `dump_mode` says, .npy files in `npu` (inputs and results
    of the device, whichever it is) and `cpu` (references). The training gets the results of its own calls; if a call cannot be
    judged, the log says so once for the operator.

    Attributes:
        root_path: The directory of this run.
    """

    root_path: str

    def __init__(
        self,
        dump_mode: str = "OFF",
        api_list: Optional[Sequence[str]] = None,
        debug: bool = False,
        dump_path: Union[str, "os.PathLike[str]", None] = None,
        tag: Optional[str] = None,
        process_num: int = 0,
    ) -> None:
        """Creates the directory and the tables.

        Args:
            dump_mode: Which calls are written as .npy files: `all`, those of `api_list` (`list`), those that fail (`auto`) or none
                (`OFF`).
            api_list: Names of operators, `["matmul"]`.
            debug: Whether each call is logged.
            dump_path: Where the directory goes; created if missing.
            tag: Part of the directory's name.
            process_num: Accepted; results are judged in this process.

        Raises:
            MsprobeException: An argument is not what it must be.
            OSError: The directory or the tables cannot be created.
        """
        super().__init__()
        check(dump_mode, api_list, debug, dump_path, tag, process_num)
        self._dump_mode, self._debug = dump_mode, debug
        self._listed = frozenset(api_list or ()) if dump_mode == "list" else frozenset()
        for name in sorted(self._listed - known_names()):
            logger.warning(say("api_list: no operator of torch is named %(name)s; it has no files", name=name))
        self.root_path, when = _new_directory(os.path.realpath(os.fspath(dump_path or "")), tag)
        self._device_files, self._cpu_files = (os.path.join(self.root_path, side) for side in ("npu", "cpu"))
        make_directory(self._device_files)
        make_directory(self._cpu_files)
        self._tables = Tables(self.root_path, when)
        self._lock = threading.Lock()  # backward may run on a thread of its own for each device
        self._counts: Counter = Counter()
        self._judged, self._unwritten = 0, False
        self._failed: list[str] = []
        self._unjudged: Counter = Counter()

    def __exit__(self, exc_type: Any, exc_value: Any, trace: Any) -> None:
        """Ends the run, and says what was found."""
        super().__exit__(exc_type, exc_value, trace)
        text = "PtdbgDispatch: %(judged)s calls judged, %(failed)s fail%(names)s; %(unjudged)s could not be judged; in %(path)s"
        names = ", ".join(self._failed[:_MOST_NAMES]) + (", ..." if len(self._failed) > _MOST_NAMES else "")
        logger.info(
            say(
                text,
                judged=self._judged,
                failed=len(self._failed),
                names=f" ({names})" if names else "",
                unjudged=sum(self._unjudged.values()),
                path=self.root_path,
            )
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Optional[dict] = None) -> Any:
        """Makes a call of the training and, where it has a reference, the other."""
        kwargs = kwargs or {}
        if any(_computes_itself(kind) for kind in types):
            return NotImplemented  # DTensor and the like: the calls that they are made of come here
        before = self._guarded(func, lambda: self._before(func, args, kwargs))
        if before is None:
            return func(*args, **kwargs)
        state = None if is_aten(func) else torch.get_rng_state()
        result = func(*args, **kwargs)
        if state is None or torch.equal(state, torch.get_rng_state()):
            self._guarded(func, lambda: self._after(func, args, kwargs, before, result))
        return result

    # ---- the other call

    def _before(self, operator: Any, args: tuple, kwargs: dict) -> Optional[tuple]:
        """Copies the arguments, before the call can overwrite them; None for a call without a reference."""
        if not is_judged(operator, args, kwargs) or not reference.can_copy(reference.tensors_in((args, kwargs))):
            return None
        size = sum(tensor.numel() * tensor.element_size() for tensor in reference.tensors_in((args, kwargs)))
        if size > _MOST_BYTES:
            raise MemoryError(f"its arguments have {size} bytes, more than {_MOST_BYTES}")
        return reference.copied(args), reference.copied(kwargs)

    def _after(self, operator: Any, args: tuple, kwargs: dict, before: tuple, result: Any) -> None:
        name = self._name_of(operator)
        if self._debug:
            logger.info("PtdbgDispatch: %s (%s)", name, operator)
        ours = reference.copied(reference.results_of(operator, result, args, kwargs))
        truth = reference.call_again(operator, *before, reference.device_of(args, kwargs))
        with self._lock:
            passes = self._tables.add(f"{name}_output", ours, truth)
            self._judged += 1
            if not passes:
                self._failed.append(name)
        if self._wants_files(base_name(operator), passes):
            self._save(name, before, result, ours, truth)

    def _name_of(self, operator: Any) -> str:
        name = base_name(operator)
        with self._lock:
            self._counts[name] += 1
            return f"{name}_{self._counts[name]}"

    def _wants_files(self, name: str, passes: bool) -> bool:
        return self._dump_mode == "all" or (self._dump_mode == "auto" and not passes) or name in self._listed

    def _save(self, name: str, before: tuple, result: Any, ours: list, truth: list) -> None:
        args, kwargs = before
        single = isinstance(result, torch.Tensor) and len(ours) == 1
        try:
            npy_files.save(args, f"{name}_input", self._device_files)
            for key, value in kwargs.items():
                npy_files.save(value, f"{name}_input_{key}", self._device_files)
            for values, directory in ((ours, self._device_files), (truth, self._cpu_files)):
                npy_files.save(values[0] if single else values, f"{name}_output", directory)
        except FAULTS as error:
            if not self._unwritten:
                logger.warning(
                    say("PtdbgDispatch: the files of %(name)s are not written: %(why)s", name=name, why=error)
                )
            self._unwritten = True

    def _guarded(self, operator: Any, work: Callable[[], Any]) -> Any:
        """Nothing of ours is seen by the training, by other modes and hooks, or raises."""
        try:
            with _unseen():
                return _core.run_unseen(work)
        except FAULTS as error:
            name = str(operator)
            with self._lock:
                self._unjudged[name] += 1
                first = self._unjudged[name] == 1
            if first:
                why = str(error).strip().split("\n", 1)[0][:200]
                why = f"{type(error).__name__}: {why}" if why else type(error).__name__
                if isinstance(error, NotImplementedError):
                    why = say("the CPU has no kernel for it")
                logger.warning(say("PtdbgDispatch: %(name)s is not judged: %(why)s", name=name, why=why))
            return None


@contextlib.contextmanager
def _unseen() -> Any:
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
        with torch.autocast("cpu", enabled=False):
            yield


def _computes_itself(kind: Any) -> bool:
    disabled = torch._C._disabled_torch_dispatch_impl
    return getattr(kind, "__torch_dispatch__", disabled) is not disabled


def _rank() -> int:
    distributed = distributed_module()
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    return rank_of_launcher("RANK", "WORLD_SIZE") or 0


def _new_directory(parent: str, tag: Optional[str]) -> tuple[str, str]:
    """Creates a directory that no other run has. Returns its path and its time."""
    make_directory(parent)
    while True:
        when = time.strftime("%Y%m%d%H%M%S")
        path = os.path.join(parent, f"msprobe_{tag + '_' if tag else ''}rank{_rank()}_{when}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o750)
            return path, when
        time.sleep(0.1)

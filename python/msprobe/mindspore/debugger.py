"""PrecisionDebugger: the calls of a MindSpore script that say what is recorded, and when."""

import os
from collections.abc import Sequence
from typing import Optional, Union

import mindspore
from mindspore import nn

from .._capture.arguments import refuse
from .._capture.debugger import Debugger
from .._capture.lifecycle import locked
from .._capture.words import say
from . import graph_cells
from .framework import MINDSPORE
from .grad_probe import check_optimizer

_OF_PYNATIVE = ("L0", "L1", "mix")
CellOrCells = Union[nn.Cell, Sequence[nn.Cell]]


class PrecisionDebugger(Debugger):
    """Records what a MindSpore script computes, so that it can be compared with another run, of PyTorch too.

        debugger = PrecisionDebugger(config_path="config.json")   # before the network is built
        for batch in dataset:
            debugger.start(net)
            loss, grads = grad_fn(*batch)
            debugger.stop()
            optimizer(grads)
            debugger.step()                                       # the next start() writes step{n+1}

    Everything computed between start() and stop() in PyNative mode goes to `{dump_path}/step{n}/rank{r}`: dump.json with the
    Max, Min, Mean and Norm (L2) of every tensor, stack.json with call stacks, construct.json with the tree of Cells, and with
    task `tensor` the tensors themselves as .npy. The script computes exactly the same bits with and without the tool: no
    operator runs for the statistics, none is put into the graph, and outside start() and stop() nothing is in place.

    There is one instance per process: constructing it again returns the existing one unchanged, and every method also works
    on the class (`PrecisionDebugger.start()`). All methods are thread-safe. They raise MsprobeException before the first
    construction and do nothing in forked children.

    Attributes:
        config: The configuration, with defaults filled in. The same object as `service.config`: assign to its attributes to
            change it from the next start() on.
        service: The interface for frameworks that have the calls built in; see Service.
    """

    _framework = MINDSPORE
    _instance: Optional["PrecisionDebugger"] = None

    def __init__(
        self,
        config_path: Union[str, "os.PathLike[str]", None] = None,
        task: Optional[str] = None,
        dump_path: Union[str, "os.PathLike[str]", None] = None,
        level: Optional[str] = None,
        step: Optional[Sequence[Union[int, str]]] = None,
    ) -> None:
        """Reads the configuration and prepares the hooks. Nothing is recorded before start().

        Arguments take precedence over the file; None and "" leave a key as it is in the file.

        Args:
            config_path: Path of the JSON configuration. None for the default one of the package: statistics at level L1.
            task: What to record: `statistics` (default), `tensor`, `structure`, `overflow_check`, `exception_dump`,
                `grad_probe` or `free_benchmark`.
            dump_path: Directory for the dump; created with its parents when recording begins.
            level: `L0` (Cells), `L1` (functions and Primitives, default), `mix` (both), `debug` (only what save() is given)
                or `L2` (kernels, by MindSpore's own dump).
            step: Steps to record, counted from 0, as numbers and inclusive ranges: `[0, "4-7"]`. Empty for all.

        Raises:
            MsprobeException: The configuration is invalid. The message gives the key, its value, what is allowed, and the file
                and line.
        """
        if self._is_second():
            return
        self._construct(config_path, {"task": task, "dump_path": dump_path, "level": level, "step": step}, None)
        PrecisionDebugger._instance = self

    @classmethod
    @locked
    def start(
        cls,
        model: Optional[CellOrCells] = None,
        token_range: Optional[Sequence[int]] = None,
        rank_id: Optional[int] = None,
    ) -> None:
        """Records everything from here to stop(), if the configuration selects this step and rank.

        start() and stop() may be called several times within a step; all of it goes to the same files. start() does nothing at
        level `debug`. If something cannot be recorded or written (disk full, no permission), the log and the summary of the
        step say so and the training continues.

        Args:
            model: The network or a list of networks; the Cells of a list are named `Cell.0.`, `Cell.1.` and so on. None for
                that of the last start(). Required for levels L0 and mix, and at L1 for the Primitives of Cells.
            token_range: [first, last], both inclusive, for inference: the forward passes of the network to record, counted
                from 0. Used once per run; needs a network.
            rank_id: The number r of the directory `rank{r}`, for the first recorded step. None for the rank of
                mindspore.communication or, before that is initialised, of the launcher (RANK_ID); without either the
                directory is `rank`.

        Raises:
            MsprobeException: An argument is invalid, a required network is missing, PrecisionDebugger has not been
                constructed, or the level is one of PyNative mode and the mode is another one.
        """
        self = cls._get()
        if self._is_child():
            return
        if graph_cells.are_meant(self._config):
            graph_cells.check(self._config)
        elif self._config.level in _OF_PYNATIVE and mindspore.get_context("mode") == mindspore.GRAPH_MODE:
            text = (
                "level %(level)s records in PyNative mode, and the mode is GRAPH_MODE: use level L2, or "
                "mindspore.set_context(mode=mindspore.PYNATIVE_MODE) (start)"
            )
            refuse(say(text, level=self._config.level))
        self._start(model, token_range, rank_id)

    @classmethod
    @locked
    def monitor(cls, optimizer: Union[nn.Cell, Sequence[nn.Cell]]) -> None:
        """Lists the gradients that an optimizer is called with, in PyNative mode. Only with task `grad_probe`.

        Writes `{dump_path}/rank{r}/grad_summary_{step}.csv` with one row per parameter: max, min and L2 norm of its gradient,
        its shape, and further columns that depend on `grad_level`. With another task it takes effect once a reloaded
        configuration has this one.

        Args:
            optimizer: One of `mindspore.nn` or `mindspore.mint.optim`, or several.

        Raises:
            MsprobeException: It is no optimizer, or PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        for one in optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]:
            check_optimizer(one)
        if not self._is_child():
            self._features.monitor(optimizer)

"""PrecisionDebugger: the calls of a training script that say what is recorded, and when."""

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import torch

from .. import _core
from .._capture.debugger import Debugger
from .._capture.lifecycle import locked
from .._capture.log import logger
from .arguments import ModelOrModels, check_model, fifth_argument
from .fingerprint import WeightFingerprint, Weights, free_path, make_fingerprint
from .framework import PYTORCH
from .weight_shards import is_module


class PrecisionDebugger(Debugger):
    """Records what a training or inference script computes, so that it can be compared with another run.

        debugger = PrecisionDebugger(config_path="config.json")   # before the model is built
        for batch in loader:
            debugger.start(model=model)
            loss = model(batch).loss
            loss.backward()
            optimizer.step()
            debugger.stop()
            debugger.step()                                       # the next start() writes step{n+1}

    Everything computed between start() and stop() goes to `{dump_path}/step{n}/rank{r}`: dump.json with the Max, Min, Mean and
    Norm (L2) of every tensor, stack.json with call stacks, construct.json with the module tree, and with task `tensor` the
    tensors themselves. docs/en/capture/config.md lists every key of the configuration, docs/en/capture/values.md says how the
    statistics are computed. The script computes exactly the same bits with and without the tool, and no hook is in place
    outside start() and stop().

    There is one instance per process: constructing it again returns the existing one unchanged, and every method also works
    on the class (`PrecisionDebugger.start()`). All methods are thread-safe. They raise MsprobeException before the first
    construction and do nothing in forked children such as DataLoader workers.

    Attributes:
        config: The configuration, with defaults filled in. The same object as `service.config`: assign to its attributes to
            change it from the next start() on.
        service: The interface for frameworks that have the calls built in (sglang, verl); see Service.
    """

    _framework = PYTORCH
    _instance: Optional["PrecisionDebugger"] = None

    def __init__(
        self,
        config_path: Union[str, "os.PathLike[str]", None] = None,
        task: Optional[str] = None,
        dump_path: Union[str, "os.PathLike[str]", None] = None,
        level: Optional[str] = None,
        *args: Any,
        model: Optional[ModelOrModels] = None,
        step: Optional[Sequence[Union[int, str]]] = None,
    ) -> None:
        """Reads the configuration and prepares the hooks. Nothing is recorded before start().

        Arguments take precedence over the file; None and "" leave a key as it is in the file.

        Args:
            config_path: Path of the JSON configuration. None for the default one of the package: statistics at level L1.
            task: What to record: `statistics` (default), `tensor`, `structure`, `overflow_check`, `diff_check`,
                `exception_dump`, `grad_probe` or `free_benchmark`.
            dump_path: Directory for the dump; created with its parents when recording begins.
            level: `L0` (modules), `L1` (functions, default), `mix` (both) or `debug` (only what save() is given).
            *args: At most two, for compatibility: `step`, or `model` and then `step`.
            model: The model or a list of models, if it is not passed to start(). Required for levels L0 and mix.
            step: Steps to record, counted from 0, as numbers and inclusive ranges: `[0, "4-7"]`. Empty for all.

        Raises:
            MsprobeException: The configuration is invalid. The message gives the key, its value, what is allowed, and the file
                and line.
            TypeError: More than six positional arguments were given.
        """
        if self._is_second():
            return
        model, step = fifth_argument(args, model, step)
        self._construct(config_path, {"task": task, "dump_path": dump_path, "level": level, "step": step}, model)
        PrecisionDebugger._instance = self

    @classmethod
    @locked
    def start(
        cls,
        model: Optional[ModelOrModels] = None,
        token_range: Optional[Sequence[int]] = None,
        rank_id: Optional[int] = None,
        scheduled_tokens: Optional[Mapping[str, int]] = None,
        rows: Optional[Sequence[Any]] = None,
    ) -> None:
        """Records everything from here to stop(), if the configuration selects this step and rank.

        start() and stop() may be called several times within a step, for example once per micro batch; all of it goes to the
        same files. start() does nothing at level `debug`, with task `grad_probe`, and with `enable_dataloader`. If something
        cannot be recorded or written (disk full, no permission), the log and the summary of the step say so and the training
        continues.

        Args:
            model: The model or a list of models; the modules of a list are named `Module.0.`, `Module.1.` and so on. None for
                the model of the last start() or of the constructor. Required for levels L0 and mix, unless it is known.
            token_range: [first, last], both inclusive, for inference: the forward passes of the model to record, counted
                from 0. Used once per run; needs a model.
            rank_id: The number r of the directory `rank{r}`, for the first recorded step. None for the rank of
                torch.distributed or, before that is initialised, of the launcher (RANK); without either the directory is
                `rank`.
            scheduled_tokens: {request id: number of tokens} of this batch. If `request_id` is configured, only the tokens of
                that request are recorded, and steps without it are skipped.
            rows: The requests in the order of dimension 0, each by its id, or as (request id, position of its first token,
                number of tokens). The order is recorded with the step. Without it the order is that of the engine's own batch
                (vLLM, vllm-ascend), read when the model is called; where it stays unknown nothing is cut out.

        Raises:
            MsprobeException: An argument is invalid, a required model is missing, PrecisionDebugger has not been constructed,
                or all configured steps are done and `exit_after_range` is true ("msprobe: exit after iteration N").
        """
        self = cls._get()
        if not self._is_child() and not self._leave_to_dataloader("start"):
            self._start(model, token_range, rank_id, scheduled_tokens, rows)

    @classmethod
    @locked
    def forward_backward_dump_end(cls) -> None:
        """Stops the recording in the middle of a step: the earlier name of stop().

        Unlike stop(), it also takes effect with `enable_dataloader`.

        Raises:
            MsprobeException: PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        if not self._is_child():
            self._stop()

    @classmethod
    @locked
    def monitor(cls, model: ModelOrModels) -> None:
        """Lists the gradients of a model's parameters at each optimizer step. Only with task `grad_probe`.

        Writes `{dump_path}/rank{r}/grad_summary_{step}.csv` with one row per parameter: max, min and L2 norm of its gradient,
        its shape, and further columns that depend on `grad_level`. With another task it takes effect once a reloaded
        configuration has this one.

        Args:
            model: The model, or a list of models whose parameters are then prefixed with `0.`, `1.` and so on.

        Raises:
            MsprobeException: `model` is not a module, or PrecisionDebugger has not been constructed.
        """
        self = cls._get()
        check_model(model)
        if not self._is_child():
            self._features.monitor(model)

    @classmethod
    @locked
    def fingerprint(
        cls,
        model: Weights,
        name: str = "weights",
        path: Union[str, "os.PathLike[str]", None] = None,
        *,
        dtype: Union[str, torch.dtype, None] = None,
        config: Any = None,
        tensor_parallel: Optional[tuple] = None,
        expert_parallel: Optional[tuple] = None,
    ) -> Optional[WeightFingerprint]:
        """Writes a hash for each row of each weight, so that two programs can tell whether they hold the same weights.

        `msprobe weights compare` compares what a trainer and an engine wrote, fused or not, and sharded or not. Nothing is
        gathered, no collective is called and the weights stay as they are.

        Args:
            model: A model, a list of models (chunks of a pipeline), or a dict or pairs of names and tensors: a bucket of a
                synchronisation.
            name: What moment this is, such as `before`, `bucket` or `after`.
            path: The file. None for `{dump_path}/fingerprint/{name}/step{n}/rank{r}.json`; a second bucket of a step gets a
                file of its own, a second model takes the place of the first.
            dtype: Round floating-point weights to this type first, as the synchronisation does: `"bfloat16"`.
            config: The configuration of the model (`model.config`), which says how many heads there are, where `model` is a
                bucket with fused weights.
            tensor_parallel: (rank, size) of tensor parallelism, where the layers do not say it. DTensor, FSDP, Megatron and
                the layers of vLLM and sglang do.
            expert_parallel: (rank, size) of expert parallelism, where the layers do not say it.

        Returns:
            The fingerprint, or None where it could not be made; the log then says why.

        Raises:
            MsprobeException: No `path` is given and PrecisionDebugger has not been constructed.
        """
        where = None if path is not None else cls._get()
        if where is not None and where._is_child():
            return None
        rank = PYTORCH.rank_of_process() or 0
        step = where._schedule.step if where is not None else -1
        try:
            if where is not None:
                directory = os.path.join(where._config.dump_path, "fingerprint", name, f"step{step}")
                path = free_path(directory, rank, not is_module(model))
            options = {
                "step": step,
                "ranks": (rank, max(1, PYTORCH.ranks_of_training())),
                "dtype": dtype,
                "config": config,
            }
            options.update(tensor_parallel=tensor_parallel, expert_parallel=expert_parallel)
            return _core.run_unseen(lambda: make_fingerprint(model, name, os.fspath(path), **options))
        except (AttributeError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
            logger.warning("no fingerprint %s was made: %s: %s", name, type(error).__name__, error)
            return None


# Without it help() and notebooks show the parameters of __new__, which takes anything.
_PARAMETERS = list(inspect.signature(PrecisionDebugger.__init__).parameters.values())[1:]
PrecisionDebugger.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]

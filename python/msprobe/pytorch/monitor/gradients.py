"""Gradients before they are averaged over ranks, each read at the moment between the backward pass and the reduction."""

import importlib
from collections.abc import Callable
from typing import Any, Optional

import torch

from ... import _core
from ..._capture.log import logger
from ..._monitor.config import MonitorConfig
from ..hook_points import HookSet
from .optimizers import OptimizerView, gradient_of

# take(name, micro step, gradient, last part of the tag)
Take = Callable[[str, int, Any, str], None]


class UnreducedGradients:
    """Puts the hooks in place that fit the wrapper of the model, and removes them again."""

    def __init__(self, config: MonitorConfig, names: dict, micro_batches: int, main_grad: bool, take: Take) -> None:
        """Knows the parameters; install() begins.

        Args:
            config: Of the monitor.
            names: Parameter -> name.
            micro_batches: Backward passes of a step.
            main_grad: Whether the trainer keeps gradients in main_grad.
            take: Called with each gradient.
        """
        self._config = config
        self._names = names
        self._micro_batches = max(micro_batches, 1)
        self._main_grad = main_grad
        self._take = take
        self._counts: dict = {}  # what gets gradients -> backward passes in this step
        self._native: list = []  # hooks that count themselves
        self._hooks = HookSet()
        self.way = ""  # for people: how gradients are read

    def next_step(self) -> None:
        """The optimizer has stepped: backward passes count from 0 again."""
        self._counts.clear()

    def passes(self) -> int:
        """Backward passes of the open step, as far as any parameter has seen them."""
        seen = [_core.gradient_hook_passes(hook) for hook in self._native]
        return max([*seen, *self._counts.values()], default=0)

    def explain(self, board: Any) -> None:
        """Why series are missing, where the reason lies in the call of set_monitor()."""
        passes = self.passes() if self._micro_batches > 1 else 1
        if passes < self._micro_batches:
            reason = f"{passes} backward passes and not grad_acc_steps = {self._micro_batches}"
            for name in self._names.values():
                board.why("grad_unreduced", name, reason)

    def install(self, models: list, optimizer: OptimizerView) -> None:
        """Begins.

        Args:
            models: The chunks of the model.
            optimizer: Of the parameters.
        """
        if any(_is_fsdp1(module) for model in models for module in model.modules()):
            self.way = "before FSDP reduces them"
            self._patch_fsdp1(models)
        elif any(hasattr(parameter, "to_local") and _is_fsdp2_param(parameter) for parameter in self._names):
            self.way = "before fully_shard reduces them"
            self._patch_fsdp2(models)
        elif not self._config.monitor_mbs_grad and self._patch_megatron():
            self.way = "before Megatron-LM reduces its buckets"
        elif not self._config.monitor_mbs_grad and self._patch_deepspeed(optimizer):
            self.way = "before DeepSpeed reduces its buckets"
        else:
            self.way = "when autograd has accumulated them"
            self._hook_parameters()

    def remove(self) -> None:
        """Ends; everything is as it was."""
        self._hooks.remove()
        self._native.clear()

    # ---- which pass it is

    def _count(self, key: Any) -> int:
        """The micro step of this gradient; -1: it is not wanted."""
        seen = self._counts.get(key, 0)
        self._counts[key] = seen + 1
        micro = seen % self._micro_batches
        if self._config.monitor_mbs_grad or micro + 1 == self._micro_batches:
            return micro
        return -1

    def _report(self, name: str, micro: int, gradient: Any, tag: str) -> None:
        self._take(name, micro if self._config.monitor_mbs_grad else -1, gradient, tag)

    # ---- plain parameters, DDP, ZeroRedundancyOptimizer

    def _hook_parameters(self) -> None:
        for parameter, name in self._names.items():
            hook = self._parameter_hook(parameter, name)
            if not self._main_grad and hasattr(parameter, "register_post_accumulate_grad_hook"):
                # Before the hooks of DDP, which may divide the gradient in place.
                native = None if self._config.monitor_mbs_grad else self.native(name, self._micro_batches)
                if native is not None:
                    self._native.append(native)
                self._hooks.on_accumulated(parameter, native if native is not None else hook)
            else:
                # After the trainer's own hook, which adds the gradient to main_grad.
                with torch.enable_grad():
                    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                self._hooks.on_node(node, hook)

    def _parameter_hook(self, parameter: Any, name: str) -> Callable:
        key = id(parameter)

        def hook(*_: Any) -> None:
            micro = self._count(key)
            if micro >= 0:
                gradient = gradient_of(parameter, self._main_grad)
                if gradient is not None:
                    self._report(name, micro, gradient, "acc_grad")

        return hook

    # ---- FSDP

    def _replace(self, module: Any, name: str, wrap: Callable) -> bool:
        original = getattr(module, name, None)
        if original is None:
            logger.warning(
                "monitor: gradients before the reduction are not read: %s has no %s in this release of PyTorch",
                module.__name__,
                name,
            )
            return False
        self._hooks.instead(module, name, wrap(original))
        return True

    def _patch_fsdp1(self, models: list) -> None:
        names = {id(p): name for p, name in self._names.items()}
        runtime = importlib.import_module("torch.distributed.fsdp._runtime_utils")
        handles = {id(h) for m in models for part in m.modules() for h in (getattr(part, "_all_handles", None) or [])}

        def wrap(original: Callable) -> Callable:
            def post_backward(state: Any, handle: Any, *rest: Any) -> Any:
                if not handles or id(handle) in handles:
                    self._guarded(lambda: self._take_flat(handle, names))
                return original(state, handle, *rest)

            return post_backward

        self._replace(runtime, "_post_backward_hook", wrap)

    def _take_flat(self, handle: Any, names: dict) -> None:
        flat = handle.flat_param
        micro = self._count(id(flat))
        if micro < 0 or flat.grad is None:
            return
        for parameter, (start, end), shape in zip(flat._params, handle._get_flat_param_offsets(), flat._shapes):
            name = names.get(id(parameter))
            if name is not None:
                self._report(name, micro, flat.grad[start : end + 1].reshape(shape), "pre_grad")

    def _patch_fsdp2(self, models: list) -> None:
        prefixed = {}
        for model in models:
            for name, parameter in model.named_parameters():
                if parameter in self._names:
                    prefixed[name] = self._names[parameter]
        group = importlib.import_module("torch.distributed.fsdp._fully_shard._fsdp_param_group")

        def wrap(original: Callable) -> Callable:
            def foreach_reduce(fsdp_params: Any, unsharded_grads: Any, *rest: Any, **named: Any) -> Any:
                self._guarded(lambda: self._take_unsharded(fsdp_params, unsharded_grads, prefixed))
                return original(fsdp_params, unsharded_grads, *rest, **named)

            return foreach_reduce

        self._replace(group, "foreach_reduce", wrap)

    def _take_unsharded(self, parameters: Any, gradients: Any, names: dict) -> None:
        micro = self._count(id(parameters[0]))
        if micro < 0:
            return
        for parameter, gradient in zip(parameters, gradients):
            name = self._names.get(getattr(parameter, "sharded_param", None)) or names.get(parameter._param_fqn)
            if name is not None:
                self._report(name, micro, gradient, "pre_grad")

    # ---- Megatron-LM and DeepSpeed

    def _patch_megatron(self) -> bool:
        try:
            buffers = importlib.import_module("megatron.core.distributed.param_and_grad_buffer")
        except ImportError:
            return False
        owners = [getattr(buffers, name, None) for name in ("_ParamAndGradBucketGroup", "Bucket")]
        owners = [owner for owner in owners if hasattr(owner, "start_grad_sync")]
        for owner in owners[:1]:
            self._replace(owner, "start_grad_sync", self._wrap_bucket)
        return bool(owners)

    def _wrap_bucket(self, original: Callable) -> Callable:
        def start_grad_sync(bucket: Any, *rest: Any, **named: Any) -> Any:
            self._guarded(lambda: self._take_bucket(bucket))
            return original(bucket, *rest, **named)

        return start_grad_sync

    def _take_bucket(self, bucket: Any) -> None:
        own = getattr(bucket, "params", None) or getattr(bucket, "params_list", None)
        if own is None:  # groups of buckets
            own = [p for part in getattr(bucket, "buckets", ()) for p in part.params]
        wanted = {id(parameter) for parameter in own}
        for parameter, name in self._names.items():
            gradient = gradient_of(parameter, self._main_grad) if id(parameter) in wanted else None
            if gradient is not None:
                self._counts[id(parameter)] = self._counts.get(id(parameter), 0) + 1
                self._report(name, -1, gradient, "pre_grad")

    def _patch_deepspeed(self, optimizer: OptimizerView) -> bool:
        zero = optimizer.optimizer
        if type(zero).__name__ != "DeepSpeedZeroOptimizer" or not hasattr(zero, "get_gradient_for_reduction"):
            return False
        for name in ("average_tensor", "buffered_reduce_fallback"):
            if hasattr(type(zero), name):
                self._replace(type(zero), name, self._wrap_zero)
        return True

    def _wrap_zero(self, original: Callable) -> Callable:
        def reduce(zero: Any, *rest: Any, **named: Any) -> Any:
            self._guarded(lambda: self._take_ipg(zero, rest))
            return original(zero, *rest, **named)

        return reduce

    def _take_ipg(self, zero: Any, arguments: tuple) -> None:
        filled = getattr(zero, "params_in_ipg_bucket", ())
        buckets = getattr(zero, "ipg_buckets", None)  # from DeepSpeed 0.18 on, by dtype
        if buckets:
            filled = [row for dtype in arguments if isinstance(dtype, torch.dtype) for row in buckets[dtype].params]
        for group, parameter, *_ in filled:
            if isinstance(parameter, int):  # from DeepSpeed 0.17 on an index
                parameter = zero.bit16_groups[group][parameter]
            name = self._names.get(parameter)
            if name is not None:
                self._counts[id(parameter)] = self._counts.get(id(parameter), 0) + 1
                self._report(name, -1, zero.get_gradient_for_reduction(parameter), "pre_grad")

    def _guarded(self, what: Callable[[], None]) -> None:
        self.guard(what)

    # Set by the monitor: runs what must not stop the training.
    guard: Callable[[Callable[[], None]], Optional[Any]] = staticmethod(lambda what: what())
    # Set by the monitor: (name, passes of a step) -> a hook that needs no Python, or None.
    native: Callable[[str, int], Optional[Any]] = staticmethod(lambda name, passes: None)


def _is_fsdp1(module: Any) -> bool:
    return type(module).__name__ == "FullyShardedDataParallel"


def _is_fsdp2_param(parameter: Any) -> bool:
    return type(parameter).__name__ == "DTensor" or hasattr(parameter, "placements")

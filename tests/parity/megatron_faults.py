"""Faults between ranks for megatron_train.py: `before` changes a chunk, `after` the run that was built, `step` what a step leaves."""

import importlib.util
from pathlib import Path
from typing import Callable, NamedTuple, Optional

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.optimizer import clip_grads
from megatron.core.optimizer import optimizer as optimizers


def _layers():
    """tests/megatron/faults.py, whose name another module here has."""
    path = Path(__file__).resolve().parents[1] / "megatron" / "faults.py"
    spec = importlib.util.spec_from_file_location("faults_of_megatron", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layers = _layers()


class Fault(NamedTuple):
    before: Optional[Callable] = None
    after: Optional[Callable] = None
    step: Optional[Callable] = None


def of_layers(name):
    return Fault(layers.FAULTS[name].before)


def parameters(run, ending):
    return [p for chunk in run.chunks for name, p in chunk.named_parameters() if name.endswith(ending)]


def on_gradients(change):
    """What finalize_model_grads has made is changed."""

    def after(run):
        own = run.config.finalize_model_grads_func

        def finalize(*args, **kwargs):
            own(*args, **kwargs)
            change(run)

        run.config.finalize_model_grads_func = finalize

    return Fault(None, after)


def scaled_gradients(factor, ending="", rank=None):
    def change(run):
        if rank is None or dist.get_rank() == rank:
            for p in parameters(run, ending):
                p.main_grad.mul_(factor())

    return on_gradients(change)


def data_parallel_size():
    return parallel_state.get_data_parallel_world_size()


def not_finalized(run):
    """Data parallelism is reduced, and nothing else is."""

    def finalize(model, num_tokens=None, **_):
        for chunk in model:
            chunk.finish_grad_sync()

    run.config.finalize_model_grads_func = finalize


def reduced_over_tensor_parallel(run):
    group = parallel_state.get_tensor_model_parallel_group()
    for p in parameters(run, "layers.1.input_layernorm.weight"):
        dist.all_reduce(p.main_grad, group=group)


def exchanged(run):
    for p in parameters(run, "layers.1.mlp.linear_fc2.weight"):
        group = parallel_state.get_tensor_model_parallel_group()
        parts = [torch.empty_like(p.main_grad) for _ in range(group.size())]
        dist.all_gather(parts, p.main_grad.contiguous(), group=group)
        p.main_grad.copy_(parts[(group.rank() + 1) % len(parts)])


def counted_on_each(run):
    """What tensor-parallel ranks hold alike is counted on each of them."""
    optimizers.tensor_parallel.param_is_not_tensor_parallel_duplicate = lambda *_, **__: True
    optimizers.param_is_not_tensor_parallel_duplicate = lambda *_, **__: True


def norm_of_one_rank(run):
    own = optimizers.get_grad_norm_fp32

    def norm(grads, norm_type=2, grad_stats_parallel_group=None):
        alone = dist.new_group([dist.get_rank()], use_local_synchronization=True)
        return own(grads, norm_type, grad_stats_parallel_group=alone)

    optimizers.get_grad_norm_fp32 = norm


def no_clipping(run):
    optimizers.clip_grad_by_total_norm_fp32 = lambda *_, **__: None


def clipped_on_one_rank(run):
    own = clip_grads.clip_grad_by_total_norm_fp32
    optimizers.clip_grad_by_total_norm_fp32 = lambda *a, **k: own(*a, **k) if dist.get_rank() == 0 else None


def marked_as_split(chunk, _stage):
    """It is whole on each rank; no attribute says along which dimension it would be divided."""
    for name, p in chunk.named_parameters():
        if name.endswith("final_layernorm.weight"):
            p.tensor_model_parallel = True
            vars(p).pop("partition_dim", None)


def drift(run):
    if dist.get_rank() == 1:
        with torch.no_grad():
            for p in parameters(run, "layers.1.input_layernorm.weight"):
                p.add_(1e-4)


FAULTS = {
    name: of_layers(name)
    for name in (
        "no_reduction",
        "doubled_reduction",
        "wrong_group",
        "no_backward_reduction",
        "norm_apart",
        "norm_rank1",
        "qkv_rank1",
        "heads_rank0",
        "gradient",
    )
} | {
    "sum": scaled_gradients(data_parallel_size),
    "mean_twice": scaled_gradients(lambda: 1 / data_parallel_size()),
    "twice_over_tp": on_gradients(reduced_over_tensor_parallel),
    "gradient_rank1": scaled_gradients(lambda: 1.5, "layers.2.mlp.linear_fc1.weight", 1),
    "gradient_exchanged": on_gradients(exchanged),
    "not_finalized": Fault(None, not_finalized),
    "counted_on_each": Fault(None, counted_on_each),
    "marked_as_split": Fault(marked_as_split),
    "norm_of_one_rank": Fault(None, norm_of_one_rank),
    "no_clipping": Fault(None, no_clipping),
    "clipped_on_one_rank": Fault(None, clipped_on_one_rank),
    "drift": Fault(None, None, drift),
    "left_out": Fault(None, layers.FAULTS["left_out"].after),
}

"""Faults for train.py, on more than one rank only: in the model, in its gradients, in what is clipped, and after the step."""

import torch
import torch.distributed as dist
from torch.nn import functional


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def changed(net, name, change, rank=None):
    """Changes what this rank has of a parameter, on one rank or on all."""
    if rank is None or dist.get_rank() == rank:
        with torch.no_grad():
            change(local(dict(net.named_parameters())[name]))


def before(fault, net, mesh):
    block = net.blocks[1]
    tp = mesh["tp"]
    if fault == "row_not_reduced":
        block.down.times = 0
    elif fault == "row_twice":
        block.down.times = 2
    elif fault == "row_mean":
        block.down.factor = 1 / tp.size()
    elif fault == "column_not_reduced":
        block.up.group = None
    elif fault == "column_twice":
        block.up.factor = float(tp.size())
    elif fault == "row_wrong_group":
        block.down.group = mesh["dp"].get_group()
    elif fault == "shard_exchanged":
        weight = block.up.weight
        parts = [torch.empty_like(local(weight)) for _ in range(tp.size())]
        dist.all_gather(parts, local(weight).detach().contiguous(), group=tp.get_group())
        with torch.no_grad():
            local(weight).copy_(parts[(tp.get_local_rank() + 1) % tp.size()])
    elif fault == "replica_before":
        changed(net, "blocks.1.norm.weight", lambda w: w.mul_(1.05), 1)
    elif fault == "bias_on_each":
        block.down.forward = lambda x, m=block.down: biased(m, x)
    elif fault == "eps_rank1" and dist.get_rank() == 1:
        block.norm.eps = 0.1


def wrapped(fault, net):
    """Behind the wrapper, which has made the replicas alike."""
    if fault == "head_by_rank":
        torch.manual_seed(dist.get_rank())
        torch.nn.init.xavier_uniform_(net.head.weight)


def biased(module, x):
    """The bias is added before the sum, by each rank."""
    summand = functional.linear(x, module.weight) + module.bias
    return type(module).forward.__globals__["Reduce"].apply(summand, module.group, 1, 1.0)


def after_backward(fault, net, mesh):
    named = {name.removeprefix("module."): parameter for name, parameter in net.named_parameters()}
    weight = named["blocks.1.up.weight"]
    if fault == "sum":
        if type(net).__name__ == "DistributedDataParallel" or hasattr(named["head.weight"], "placements"):
            for parameter in named.values():
                local(parameter.grad).mul_(mesh["dp"].size())
    elif fault == "mean_twice":
        for parameter in named.values():
            local(parameter.grad).div_(mesh["dp"].size())
    elif fault == "twice_one":
        local(weight.grad).mul_(mesh["dp"].size())
    elif fault == "gradient_rank1" and dist.get_rank() == 1:
        local(weight.grad).mul_(1.5)
    elif fault == "gradient_shard_exchanged":
        own = local(weight.grad)
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own.contiguous())
        own.copy_(parts[(dist.get_rank() + 1) % len(parts)])


def after_clip(fault, net, mesh):
    named = {name.removeprefix("module."): parameter for name, parameter in net.named_parameters()}
    if fault == "one_not_clipped":
        local(named["blocks.1.up.weight"].grad).mul_(3.0)
    elif fault == "clip_rank1" and dist.get_rank() == 1:
        for parameter in named.values():
            local(parameter.grad).mul_(0.5)


def after_step(fault, net, mesh):
    named = {name.removeprefix("module."): parameter for name, parameter in net.named_parameters()}
    if fault == "drift_after" and dist.get_rank() == 1:
        with torch.no_grad():
            local(named["blocks.1.norm.weight"]).add_(1e-4)
    elif fault == "decay_by_hand":
        with torch.no_grad():
            local(named["blocks.1.down.weight"]).mul_(0.99)

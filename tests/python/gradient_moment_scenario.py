"""Two processes train one model under every wrapper that reduces gradients, each layout in a step of the dump.

`gradient_moment_scenario.py DIRECTORY`: each process also writes DIRECTORY/local{rank}.json, {layout: {parameter: Max, Min, Mean
and Norm of the gradient}} as the process computes it for its own part of the batch, without the wrapper.
"""

import importlib
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from forked import fork
from torch.nn.parallel import DistributedDataParallel

WORLD = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


def net():
    torch.manual_seed(0)
    return Net()


def batches(rank, count=1):
    return torch.randn(count, 4, 8, generator=torch.Generator().manual_seed(10 + rank))


def ddp(hook=None, state=None, zero=False, **options):
    def make():
        model = DistributedDataParallel(net(), **options)
        if hook is not None:
            model.register_comm_hook(state() if state else None, hook)
        optimizer = torch.optim.SGD
        if not zero:
            return model, optimizer(model.parameters(), lr=0.1)
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return model, ZeroRedundancyOptimizer(
            model.parameters(), optimizer, lr=0.1, parameters_as_bucket_view=zero == "views"
        )

    return make


def fsdp1(**options):
    def make():
        from torch.distributed.fsdp import FullyShardedDataParallel

        model = FullyShardedDataParallel(net(), device_id=torch.device("cpu"), **options)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    return make


def fsdp2(half=False, **options):
    def make():
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        model, mesh = net(), init_device_mesh("cpu", (WORLD,))
        if half:
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for part in (model.up, model.down, model):
            fully_shard(part, mesh=mesh, **options)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    return make


def layouts():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.distributed.fsdp import ShardingStrategy

    def power():
        return powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)

    return {
        "ddp": ddp(),
        "ddp_views": ddp(gradient_as_bucket_view=True),
        "ddp_static": ddp(gradient_as_bucket_view=True, static_graph=True),
        "ddp_allreduce_hook": ddp(default_hooks.allreduce_hook, gradient_as_bucket_view=True),
        "ddp_half_hook": ddp(default_hooks.fp16_compress_hook, gradient_as_bucket_view=True),
        "ddp_power_hook": ddp(powerSGD_hook.powerSGD_hook, power, gradient_as_bucket_view=True),
        "zero": ddp(zero=True),
        "zero_views": ddp(zero="views", gradient_as_bucket_view=True),
        "fsdp1": fsdp1(use_orig_params=True),
        "fsdp1_flat": fsdp1(use_orig_params=False),
        "fsdp1_grad_op": fsdp1(use_orig_params=True, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP),
        "fsdp1_no_shard": fsdp1(use_orig_params=True, sharding_strategy=ShardingStrategy.NO_SHARD),
        "fsdp2": fsdp2(),
        "fsdp2_kept": fsdp2(reshard_after_forward=False),
        "fsdp2_half": fsdp2(half=True),
    }


def loss_of(model, batch):
    return model(batch).float().square().sum()


def numbers(gradient):
    wide = gradient.detach().double()
    return [wide.max().item(), wide.min().item(), wide.mean().item(), wide.norm().item()]


def local(rank, half):
    """As a process computes them that knows of no other."""
    model, batch = net(), batches(rank)[0]
    if half:
        model, batch = model.bfloat16(), batch.bfloat16()
    loss_of(model, batch).backward()
    return {name: numbers(parameter.grad) for name, parameter in model.named_parameters()}


def train(rank, directory):
    from msprobe.pytorch import PrecisionDebugger

    store = dist.FileStore(os.path.join(directory, "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    debugger = PrecisionDebugger(config_path=os.path.join(directory, "config.json"))
    found = {}
    for name, make in layouts().items():
        model, optimizer = make()
        debugger.start(model=model)
        loss_of(model, batches(rank)[0]).backward()
        optimizer.step()
        debugger.stop()
        debugger.step()
        found[name] = local(rank, half=name == "fsdp2_half")
    with open(os.path.join(directory, f"local{rank}.json"), "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


def main():
    torch.set_num_threads(1)
    importlib.import_module("torch.distributed.fsdp")  # once for both children

    statuses = []
    for child in [fork(train, rank, sys.argv[1]) for rank in range(WORLD)]:
        statuses.append(os.waitpid(child, 0)[1])
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()

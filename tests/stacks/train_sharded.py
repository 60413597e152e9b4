"""Trains a small model on two processes under a framework that moves parameters or their gradients, bare and then recorded.

`train_sharded.py DIRECTORY STACK LEVEL:KIND[,LEVEL:KIND ...]` with KIND statistics, md5 or tensor. STACK is zero1, zero2 or
zero3 (DeepSpeed), fsdp1 or fsdp2 (torch), megatron (megatron-core, in whose sources `device='cuda'` and the like were
replaced by 'cpu'). Each process writes DIRECTORY/bare_{rank}.json, {"bits": digest, "alone": {parameter: Max, Min, Mean and
Norm of the gradient of the first step, as the process computes it without the framework}}, and
DIRECTORY/LEVEL:KIND_{rank}.json, {"bits": digest, "gradients": {parameter: [item of dump.json, ...]}}.
"""

import hashlib
import json
import os
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "megatron"))

import stand_in

WORLD, STEPS = 2, 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.norm, self.down = nn.Linear(32, 64), nn.LayerNorm(64), nn.Linear(64, 8)

    def forward(self, x):
        return self.down(torch.tanh(self.norm(self.up(x))))


def batch(rank, step):
    return torch.randn(4, 32, generator=torch.Generator().manual_seed(100 * rank + step))


class Deepspeed:
    def __init__(self, stage):
        import deepspeed

        deepspeed.init_distributed("gloo", verbose=False)
        zero = {"stage": stage, "stage3_param_persistence_threshold": 0, "reduce_bucket_size": 1000}
        config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": zero, "zero_allow_untested_optimizer": True}
        net = Net()
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        self.engine, *_ = deepspeed.initialize(model=net, optimizer=optimizer, config=config)
        self.model, self.stage = self.engine, stage

    def step(self, x):
        loss = self.engine(x).square().sum()
        self.engine.backward(loss)
        self.engine.step()
        return loss

    def parameters(self):
        import deepspeed

        with deepspeed.zero.GatheredParameters(list(self.engine.parameters()), enabled=self.stage == 3):
            return [p.detach().clone() for p in self.engine.parameters()]


class Torch:
    def __init__(self, kind):
        dist.init_process_group("gloo")
        net = Net()
        if kind == "fsdp1":
            from torch.distributed.fsdp import FullyShardedDataParallel

            net = FullyShardedDataParallel(net, device_id=torch.device("cpu"), use_orig_params=True)
        else:
            from torch.distributed.fsdp import fully_shard

            for part in (net.up, net.norm, net.down, net):
                fully_shard(part)
        self.model = net
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)

    def step(self, x):
        loss = self.model(x).square().sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def parameters(self):
        return [getattr(p, "_local_tensor", p).detach() for p in self.model.parameters()]


class Megatron:
    """Its DistributedDataParallel: hooks of the accumulators add each gradient to one buffer and take it away."""

    def __init__(self):
        stand_in.pretend_cuda()
        from megatron.core import parallel_state
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
        from megatron.core.transformer import TransformerConfig

        dist.init_process_group("gloo")
        parallel_state.initialize_model_parallel()
        config = TransformerConfig(num_layers=1, hidden_size=32, num_attention_heads=4, use_cpu_initialization=True)
        ddp = DistributedDataParallelConfig(overlap_grad_reduce=False, grad_reduce_in_fp32=True)
        self.model = DistributedDataParallel(config, ddp, Net())

    def step(self, x):
        self.model.zero_grad_buffer()
        loss = self.model(x).square().sum()
        loss.backward()
        self.model.finish_grad_sync()
        with torch.no_grad():
            for p in self.model.parameters():
                p.sub_(0.01 * p.main_grad)
        return loss

    def parameters(self):
        return [p.detach() for p in self.model.parameters()]


STACKS = {
    **{f"zero{stage}": (lambda stage=stage: Deepspeed(stage)) for stage in (1, 2, 3)},
    **{kind: (lambda kind=kind: Torch(kind)) for kind in ("fsdp1", "fsdp2")},
    "megatron": Megatron,
}


def alone(rank):
    net = Net()
    net(batch(rank, 0)).square().sum().backward()
    wide = {name: p.grad.double() for name, p in net.named_parameters()}
    return {name: [g.max().item(), g.min().item(), g.mean().item(), g.norm().item()] for name, g in wide.items()}


def digest(tensors):
    sha = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().contiguous().view(-1)
        sha.update(f"{plain.dtype}{tuple(tensor.shape)}".encode() + plain.view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def gradients(directory, rank):
    """Of all steps {"up.weight": [item, ...]}."""
    found = {}
    for step in range(STEPS):
        with open(f"{directory}/step{step}/rank{rank}/dump.json", encoding="utf-8") as file:
            data = json.load(file)["data"]
        for op, entry in data.items():
            if ".parameters_grad." in op:
                module = op.split(".parameters_grad.")[0].split(".")[-2]
                for parameter, items in entry.items():
                    found.setdefault(f"{module}.{parameter}", []).append(items[0])
    return found


def train(directory, rank, stack, way):
    """`way`: level and kind of the dump, or None."""
    torch.set_num_threads(1)
    debugger = None
    if way:
        from msprobe.pytorch import PrecisionDebugger

        level, kind = way.split(":")
        task = "tensor" if kind == "tensor" else "statistics"
        dump = os.path.join(directory, way.replace(":", "_"))
        config = {"task": task, "level": level, "dump_path": dump, task: {}}
        if kind == "md5":
            config[task]["summary_mode"] = "md5"
        path = os.path.join(directory, f"config{rank}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        debugger = PrecisionDebugger(config_path=path)
    run = STACKS[stack]()
    losses = []
    for step in range(STEPS):
        if debugger:
            debugger.start(model=run.model)
        losses.append(run.step(batch(rank, step)))
        if debugger:
            debugger.stop()
            debugger.step()
    result = {"bits": digest([*losses, *run.parameters()])}
    if debugger:
        result["gradients"] = gradients(dump, rank)
    else:
        result["alone"] = alone(rank)
    dist.barrier()
    return result


def child(directory, rank, stack, way, port):
    status = 1
    try:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(WORLD))
        os.environ.update(LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(WORLD), DS_ACCELERATOR="cpu")
        result = train(directory, rank, stack, way)
        with open(os.path.join(directory, f"{way or 'bare'}_{rank}.json"), "w", encoding="utf-8") as file:
            json.dump(result, file)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it was, it is shown and this process ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def preload(stack):
    os.environ["DS_ACCELERATOR"] = "cpu"
    if stack.startswith("zero"):
        import deepspeed  # noqa: F401 - once for all children
    elif stack.startswith("fsdp"):
        import torch.distributed.fsdp  # noqa: F401
    import msprobe.pytorch  # noqa: F401


def main():
    directory, stack, ways = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    preload(stack)
    failed = []
    for way in [None, *ways]:
        port = free_port()
        children = []
        for rank in range(WORLD):
            pid = os.fork()
            if pid == 0:
                child(directory, rank, stack, way, port)
            children.append(pid)
        if any(os.waitpid(pid, 0)[1] for pid in children):
            failed.append(way)
    sys.exit(f"failed: {failed}" if failed else 0)


if __name__ == "__main__":
    main()

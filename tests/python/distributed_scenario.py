"""Trains small models on several processes, without and then with the tool, and says whether the bits are equal.

`distributed_scenario.py WORLD DIRECTORY [SCENARIO ...]`: every scenario is one step of the dump below DIRECTORY/dump. Each
process writes DIRECTORY/result{rank}.json. Runs under ours and under the earlier tool.
"""

import hashlib
import json
import os
import random
import signal
import socket
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed import all_reduce as imported_all_reduce  # a name from before the tool
from torch.nn.parallel import DistributedDataParallel

TIME_LIMIT = 240


class Recording:
    """What the scenarios call in place of the debugger; does nothing in the run without the tool."""

    def __init__(self, debugger=None):
        self.debugger = debugger

    def start(self, model=None):
        if self.debugger:
            self.debugger.start(model=model if model is not None else nn.Sequential(nn.Identity()))

    def stop(self):
        if self.debugger:
            self.debugger.stop()


def net(width=8, depth=2):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(width, 2))


def grads(model):
    return [p.grad for p in model.parameters()]


def data(rank, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(10 + rank))


# ---- collectives --------------------------------------------------------------------------------------------------------


def collectives(rank, world, recording):
    """Each collective, synchronous and not; what arrives is known."""
    recording.start()
    x = torch.full((4,), float(rank + 1))
    dist.all_reduce(x)
    imported_all_reduce(x, op=dist.ReduceOp.MAX)
    dist.broadcast(x, src=0)
    late = torch.full((4,), float(rank + 1))
    work = dist.all_reduce(late, async_op=True)
    waited = work.wait()
    parts = [torch.zeros(2) for _ in range(world)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    whole = torch.zeros(2 * world)
    work = dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)), async_op=True)
    work.wait()
    share = torch.zeros(2)
    dist.reduce_scatter(share, [torch.full((2,), float(rank + i)) for i in range(world)])
    piece = torch.zeros(2)
    dist.reduce_scatter_tensor(piece, torch.arange(2.0 * world) + rank)
    exchanged = torch.zeros(world)
    dist.all_to_all_single(exchanged, torch.arange(float(world)) + 10 * rank)
    root = [torch.zeros(2) for _ in range(world)] if rank == 0 else None
    dist.gather(torch.full((2,), float(rank)), root)
    got = torch.zeros(2)
    dist.scatter(got, [torch.full((2,), float(i)) for i in range(world)] if rank == 0 else None)
    dist.reduce(x, dst=0)
    recording.stop()
    return [x, late, *parts, whole, share, piece, exchanged, got], {"waited": waited}


def point_to_point(rank, world, recording):
    """A ring: everybody sends to the next and receives from the previous one."""
    after, before = (rank + 1) % world, (rank - 1) % world
    recording.start()
    got = torch.zeros(3)
    if rank % 2 == 0:
        dist.send(torch.full((3,), float(rank)), after)
        dist.recv(got, before)
    else:
        dist.recv(got, before)
        dist.send(torch.full((3,), float(rank)), after)
    soon = torch.zeros(3)
    works = [dist.isend(torch.full((3,), 10.0 + rank), after), dist.irecv(soon, before)]
    waited = [work.wait() for work in works]
    ring = torch.zeros(3)
    ops = [
        dist.P2POp(dist.isend, torch.full((3,), 20.0 + rank), after),
        dist.P2POp(dist.irecv, ring, before),
    ]
    works = dist.batch_isend_irecv(ops)
    waited += [work.wait() for work in works]
    recording.stop()
    return [got, soon, ring], {"waited": waited}


def never_waited(rank, world, recording):
    """A receive that nobody waits for before the step ends, and one that is waited for after stop()."""
    after, before = (rank + 1) % world, (rank - 1) % world
    recording.start()
    never, late = torch.zeros(2), torch.zeros(2)
    works = [dist.irecv(late, before, tag=1), dist.irecv(never, before, tag=2)]
    recording.stop()
    sent = [dist.isend(torch.full((2,), 5.0 + rank), after, tag=tag) for tag in (1, 2)]
    works[0].wait()
    # Of the second the step knows nothing when it ends; then it arrives as always.
    finish = [works[1], *sent]
    return [late], {"finish": lambda: ([work.wait() for work in finish], never)[1]}


# ---- data parallel ------------------------------------------------------------------------------------------------------


def ddp(rank, world, recording, steps=2, comm_hook=False, accumulate=1, build=net, **options):
    torch.manual_seed(0)
    model = build()
    parallel = DistributedDataParallel(model, **options)
    if comm_hook:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        parallel.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=0.01)
    recording.start(parallel)
    out = []
    for _ in range(steps):
        optimizer.zero_grad()
        for i in range(accumulate):
            if i + 1 < accumulate:
                with parallel.no_sync():
                    parallel(data(rank + 7 * i, 4, 8)).pow(2).sum().backward()
            else:
                loss = parallel(data(rank, 4, 8)).pow(2).sum()
                loss.backward()
        optimizer.step()
        out.append(loss.detach())
    recording.stop()
    return [*out, *grads(model), *model.parameters()], {}


class PartlyUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x):
        return self.used(x)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        x = checkpoint(lambda t: torch.tanh(self.a(t)), x, use_reentrant=False)
        x = checkpoint(lambda t: torch.tanh(self.b(t)), x, use_reentrant=False)
        return self.head(x)


def ddp_static_graph(rank, world, recording):
    return ddp(rank, world, recording, static_graph=True, build=Checkpointed)


def ddp_unused(rank, world, recording):
    return ddp(rank, world, recording, find_unused_parameters=True, build=PartlyUsed)


def ddp_accumulate(rank, world, recording):
    return ddp(rank, world, recording, accumulate=3)


def ddp_comm_hook(rank, world, recording):
    return ddp(rank, world, recording, comm_hook=True)


def ddp_bucket_view(rank, world, recording):
    return ddp(rank, world, recording, gradient_as_bucket_view=True)


def fsdp1(rank, world, recording, use_orig_params=True):
    from torch.distributed.fsdp import FullyShardedDataParallel

    torch.manual_seed(0)
    model = FullyShardedDataParallel(net(), device_id=torch.device("cpu"), use_orig_params=use_orig_params)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recording.start(model)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(data(rank, 4, 8)).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    recording.stop()
    return [*losses, *model.parameters()], {}


def fsdp1_flat(rank, world, recording):
    return fsdp1(rank, world, recording, use_orig_params=False)


def fsdp2(rank, world, recording):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Sequential(Checkpointed(), nn.Linear(2, 2))
    mesh = init_device_mesh("cpu", (world,))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    recording.start(model)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(data(rank, 4, 8)).pow(2).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    recording.stop()
    return [*losses, *(p.to_local() for p in model.parameters())], {}


# ---- tensor parallel ----------------------------------------------------------------------------------------------------


def tp_dtensor(rank, world, recording):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    mesh = init_device_mesh("cpu", (world,))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    recording.start(model)
    loss = model(data(0, 4, 8)).pow(2).sum()
    loss.backward()
    recording.stop()
    return [loss, *(p.grad.to_local() for p in model.parameters())], {}


class CopyToRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class ReduceFromRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        imported_all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class ColumnParallelLinear(nn.Module):
    def __init__(self, rank, world, inputs, outputs):
        super().__init__()
        whole = nn.Linear(inputs, outputs)
        self.weight = nn.Parameter(whole.weight.detach().chunk(world)[rank].clone())

    def forward(self, x):
        return F.linear(CopyToRegion.apply(x), self.weight)


class RowParallelLinear(nn.Module):
    def __init__(self, rank, world, inputs, outputs):
        super().__init__()
        whole = nn.Linear(inputs, outputs)
        self.weight = nn.Parameter(whole.weight.detach().chunk(world, 1)[rank].clone())

    def forward(self, x):
        return ReduceFromRegion.apply(F.linear(x, self.weight))


def tp_megatron(rank, world, recording):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 8), ColumnParallelLinear(rank, world, 8, 16), nn.GELU(), RowParallelLinear(rank, world, 16, 4)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recording.start(model)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(data(0, 4, 8)).pow(2).sum()
        loss.backward()
        optimizer.step()
    recording.stop()
    return [loss, *grads(model)], {}


# ---- pipeline parallel --------------------------------------------------------------------------------------------------


def pipeline(rank, world, recording, micro_batches=4):
    """1F1B written by hand: forwards and backwards of the micro batches alternate once the pipeline is full."""
    torch.manual_seed(rank)
    stage = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    first, last = rank == 0, rank == world - 1
    inputs, outputs, losses = [], [], []

    def exchange(send, to, shape, source):
        ops, got = [], torch.zeros(shape) if source is not None else None
        if send is not None:
            ops.append(dist.P2POp(dist.isend, send, to))
        if got is not None:
            ops.append(dist.P2POp(dist.irecv, got, source))
        for work in dist.batch_isend_irecv(ops) if ops else []:
            work.wait()
        return got

    def forward(i, x):
        x = data(i, 2, 8) if first else x.requires_grad_()
        y = stage(x)
        if last:
            y = y.pow(2).sum()
            losses.append(y.detach())
        inputs.append(x)
        outputs.append(y)
        return y.detach()

    def backward(grad):
        x, y = inputs.pop(0), outputs.pop(0)
        y.backward(None if last else grad)
        return None if first else x.grad

    recording.start(stage)
    warm_up = min(world - rank - 1, micro_batches)
    shape = (2, 8)
    for i in range(warm_up):
        x = exchange(None, None, shape, None if first else rank - 1)
        y = forward(i, x)
        exchange(y, rank + 1, shape, None)
    x = exchange(None, None, shape, rank - 1) if not first and warm_up < micro_batches else None
    for i in range(warm_up, micro_batches):
        y = forward(i, x)
        grad = None if last else exchange(y, rank + 1, shape, rank + 1)
        out = backward(grad)
        more = i + 1 < micro_batches
        x = None if first else exchange(out, rank - 1, shape, rank - 1 if more else None)
    for _ in range(warm_up):
        out = backward(exchange(None, None, shape, rank + 1))
        if not first:
            exchange(out, rank - 1, shape, None)
    recording.stop()
    return [*losses, *grads(stage)], {}


def pipelining(rank, world, recording):
    """torch.distributed.pipelining: the schedule of PyTorch itself."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    torch.manual_seed(rank)
    module = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    losses = []
    schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=lambda out, target: (out - target).pow(2).sum())
    recording.start(module)
    if rank == 0:
        schedule.step(data(0, 4, 8))
    elif rank == world - 1:
        schedule.step(target=torch.zeros(4, 8), losses=losses)
    else:
        schedule.step()
    recording.stop()
    return [*losses, *grads(module)], {}


SCENARIOS = {
    f.__name__: f
    for f in (
        *(collectives, point_to_point, never_waited),
        *(ddp, ddp_static_graph, ddp_unused, ddp_accumulate, ddp_comm_hook, ddp_bucket_view),
        *(fsdp1, fsdp1_flat, fsdp2, tp_dtensor, tp_megatron, pipeline, pipelining),
    )
}

# ---- running them -------------------------------------------------------------------------------------------------------


def digest(tensors):
    sha = hashlib.sha256()
    for tensor in tensors:
        if tensor is not None:
            plain = tensor.detach().contiguous().view(-1)
            sha.update(f"{plain.dtype}{tuple(tensor.shape)}".encode() + plain.view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def run_one(scenario, rank, world, recording, end_step):
    torch.manual_seed(1)
    random.seed(1)
    tensors, extra = SCENARIOS[scenario](rank, world, recording)
    bits = digest([*tensors, torch.get_rng_state()])
    end_step()
    if "finish" in extra:
        dist.barrier()
        bits += digest([extra.pop("finish")()])
    return bits, extra


def run_rank(rank, world, port, directory, scenarios, compare_bits):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    plain = {}
    if compare_bits:
        for name in scenarios:
            plain[name] = run_one(name, rank, world, Recording(), lambda: None)
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=os.path.join(directory, "config.json"))
    result = {}
    for name in scenarios:
        begin = time.monotonic()
        bits, extra = run_one(name, rank, world, Recording(debugger), debugger.step)
        result[name] = {**extra, "seconds": time.monotonic() - begin}
        if compare_bits:
            result[name].update(same=bits == plain[name][0], same_answers=extra == plain[name][1])
    with open(os.path.join(directory, f"result{rank}.json"), "w", encoding="utf-8") as file:
        json.dump(result, file)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    world, directory = int(sys.argv[1]), sys.argv[2]
    compare_bits = os.environ.get("COMPARE_BITS", "1") == "1"
    scenarios = sys.argv[3:] or list(SCENARIOS)
    port = free_port()
    children = []
    for rank in range(world):
        child = os.fork()
        if child == 0:
            signal.alarm(TIME_LIMIT)
            code = 1
            try:
                run_rank(rank, world, port, directory, scenarios, compare_bits)
                code = 0
            finally:  # a child never comes back to the code of its parent
                if code:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    failed = 0
    for _ in children:
        child, status = os.wait()
        children.remove(child)
        if status != 0:
            failed = 1
            for other in children:  # they would wait for the one that is gone
                os.kill(other, signal.SIGTERM)
    sys.exit(failed)


if __name__ == "__main__":
    main()

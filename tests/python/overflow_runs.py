"""Runs in which NaN or infinities are planted at a known place, on several processes; each run is a step of one dump.

`overflow_runs.py WORLD DIRECTORY [RUN ...]` trains under the tool and writes DIRECTORY/dump. TRUTH says what is to be
found: the ranks and the op at which the first bad value appears.
"""

import ctypes
import os
import signal
import socket
import sys
import traceback
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

TIME_LIMIT = 240
INF, NAN = float("inf"), float("nan")


class Truth(NamedTuple):
    ranks: tuple  # () where nothing is wrong
    op: str = ""
    kind: str = "op"


TRUTH = {2: {}, 4: {}}
RUNS = {}


def planted(ranks, op="", kind="op", worlds=(2,)):
    def register(run):
        RUNS[run.__name__] = run
        for world in worlds:
            TRUTH[world][run.__name__] = Truth(tuple(ranks), op, kind)
        return run

    return register


class Mlp(nn.Module):
    def __init__(self, width=8, hidden=16):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def stack(depth=3):
    torch.manual_seed(0)
    return nn.Sequential(*[Mlp() for _ in range(depth)])


def data(rank, *shape):
    return torch.randn(*(shape or (4, 8)), generator=torch.Generator().manual_seed(10 + rank))


def average(model, group=None):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)


class Sum(torch.autograd.Function):
    """Row-parallel output: sums over the ranks; the gradient passes."""

    @staticmethod
    def forward(ctx, x, group=None):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Copy(torch.autograd.Function):
    """Column-parallel input: the gradient is summed over the ranks."""

    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class ParallelMlp(nn.Module):
    def __init__(self, group=None):
        super().__init__()
        self.up, self.down, self.group = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), group

    def forward(self, x):
        return x + Sum.apply(self.down(F.gelu(self.up(Copy.apply(x, self.group)))), self.group)


def parallel_stack(rank, group=None, depth=2):
    torch.manual_seed(100 + rank)
    return nn.Sequential(*[ParallelMlp(group) for _ in range(depth)])


# ---- data parallel ------------------------------------------------------------------------------------------------------


@planted([1], "Torch.exp.0.forward")
def exp_overflows(rank, world, start):
    """Of one rank, in the forward; the gradients bring it to the others."""
    model = stack()
    start(model)
    y = model(data(rank))
    y = torch.exp(y * (1000.0 if rank == 1 else 1.0))
    y.mean().backward()
    average(model)


@planted([0], "Tensor.__truediv__.0.forward")
def loss_divides_by_zero(rank, world, start):
    """The number of tokens is zero on one rank."""
    model = stack()
    start(model)
    mask = torch.zeros(4) if rank == 0 else torch.ones(4)
    loss = (model(data(rank)).sum(-1) * mask).sum() / mask.sum()
    loss.backward()
    average(model)


@planted([1], "Torch.sqrt.0.backward")
def gradient_of_sqrt(rank, world, start):
    """The forward is clean, the derivative at zero is not."""
    model = stack()
    start(model)
    y = model(data(rank))
    y = torch.sqrt(torch.relu(y) * (0.0 if rank == 1 else 1.0) + (0.0 if rank == 1 else 1.0))
    y.sum().backward()
    average(model)


@planted([0], "Torch.log.0.forward")
def hidden_by_where(rank, world, start):
    """where() hides log(0) in the forward; the gradient of log is NaN all the same."""
    model = stack()
    start(model)
    y = model(data(rank)).abs()
    y = torch.where(y > 0.5, torch.log(y * (0.0 if rank == 0 else 1.0) + (0.0 if rank == 0 else 1.0)), y)
    y.sum().backward()
    average(model)


@planted([1], "Functional.linear.7.forward")
def half_precision_matmul(rank, world, start):
    """float16 ends at 65504."""
    model = stack()
    start(model)
    half = (model(data(rank)) * 100).half()
    weight = torch.full((8, 8), 2000.0 if rank == 1 else 0.01, dtype=torch.float16)
    F.linear(F.linear(half * 0 + 30, torch.ones(8, 8, dtype=torch.float16)), weight).float().mean().backward()
    average(model)


@planted([0], "Functional.softmax.0.forward")
def row_all_masked(rank, world, start):
    """The mask is as it should be but for one row."""
    model = stack()
    start(model)
    x = model(data(rank))
    scores = x @ x.t()
    allowed = torch.ones(4, 4).tril().bool()
    if rank == 0:
        allowed[2] = False
    scores = scores.masked_fill(~allowed, -INF)
    (F.softmax(scores, dim=-1) @ x).sum().backward()
    average(model)


@planted([])
def healthy_masks(rank, world, start):
    """-inf in masks of three kinds, which softmax absorbs."""
    model = stack()
    start(model)
    x = model(data(rank))
    mask = torch.full((4, 4), -INF).triu(1)
    y = F.softmax(x @ x.t() + mask, dim=-1) @ x
    allowed = torch.ones(4, 4).tril().bool()
    y = F.softmax(torch.where(allowed, y @ y.t(), torch.tensor(-INF)), dim=-1) @ y
    y = F.scaled_dot_product_attention(y[None], y[None], y[None], attn_mask=mask)
    y.sum().backward()
    average(model)


@planted([])
def healthy_buffers(rank, world, start):
    """Uninitialised memory that communication fills."""
    torch.use_deterministic_algorithms(True)  # empty() then gives NaN
    try:
        start(stack())
        got = torch.empty(4)
        if rank == 0:
            dist.send(torch.ones(4), 1)
        else:
            dist.recv(got, 0)
        parts = [torch.empty(4) for _ in range(world)]
        dist.all_gather(parts, torch.ones(4))
        dist.gather(torch.ones(4), [torch.empty(4) for _ in range(world)] if rank == 0 else None)
        whole = torch.empty(4 * world)
        dist.all_gather_into_tensor(whole, torch.ones(4))
        piece = torch.empty(4)
        dist.reduce_scatter_tensor(piece, torch.ones(4 * world))
        shared = torch.ones(4) if rank == 0 else torch.empty(4)
        dist.broadcast(shared, 0)
        torch.empty(4).copy_(piece).add_(shared)
    finally:
        torch.use_deterministic_algorithms(False)


@planted([1], "Tensor.add.0.forward", "uninitialised")
def reads_empty_memory(rank, world, start):
    torch.use_deterministic_algorithms(True)
    try:
        model = stack()
        start(model)
        x = data(rank)
        bias = torch.empty(4, 8) if rank == 1 else torch.zeros(4, 8)
        model(x.add(bias)).sum().backward()
        average(model)
    finally:
        torch.use_deterministic_algorithms(False)


@planted([1], "Functional.layer_norm.0.forward", "input")
def bad_batch(rank, world, start):
    model = stack()
    x = data(rank)
    if rank == 1:
        x[2, 3] = NAN
    start(model)
    model(x).sum().backward()
    average(model)


@planted([0], "Module.1.up.Linear.forward.0", "parameter")
def bad_weight(rank, world, start):
    model = stack()
    if rank == 0:
        model[1].up.weight.data[0, 0] = INF
    start(model)
    model(data(rank)).sum().backward()
    average(model)


@planted([0, 1], "Tensor.addcdiv_", "op")
def optimizer_divides_by_zero(rank, world, start):
    """Adam with eps 0 where gradients are zero: 0/0."""
    model = stack(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, eps=0.0, foreach=False)
    start(model)
    (model(data(rank)) * 0.0).sum().backward()
    average(model)
    optimizer.step()


@planted([0], "Tensor.mul_.1.forward")
def in_place_on_a_view(rank, world, start):
    """The values that go wrong are read under another name later."""
    model = stack()
    start(model)
    y = model(data(rank)).detach().clone()
    part = y[1:3]
    part.mul_(1e25)
    part.mul_(1e25 if rank == 0 else 1e-25)
    model(y).sum().backward()
    average(model)


@planted([1], "Torch.exp.0.forward")
def inside_a_dict(rank, world, start):
    class Wrap(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = stack()

        def forward(self, x):
            y = self.body(x)
            return {"states": [x, {"last": torch.exp(y + (1000 if rank == 1 else 0))}]}

    model = Wrap()
    start(model)
    model(data(rank))["states"][1]["last"].mean().backward()
    average(model)


@planted([1], "Functional.linear.0.backward")
def scaled_gradient_overflows(rank, world, start):
    """What a gradient scaler is for: the scaled loss is too large for float16 in the backward of one rank."""
    start(stack())
    x = torch.full((4, 8), 0.01, dtype=torch.float16, requires_grad=True)
    weight = torch.full((8, 8), 100.0 if rank == 1 else 0.01, dtype=torch.float16, requires_grad=True)
    loss = F.linear(x, weight).float().sum()
    (loss * 1024.0).backward()
    for grad in (x.grad, weight.grad):
        grad.mul_(1 / 1024.0)
        dist.all_reduce(grad)


# ---- communication ------------------------------------------------------------------------------------------------------


@planted([0, 1], "Distributed.all_reduce.0.forward", "communication")
def sum_overflows(rank, world, start):
    model = stack()
    start(model)
    x = model(data(rank)).detach()
    y = torch.add(x * 0, 3e38)
    dist.all_reduce(y)
    model(y).sum().backward()
    average(model)


@planted([0], "Distributed.reduce.0.forward", "communication")
def reduce_to_one_overflows(rank, world, start):
    start(stack())
    y = torch.add(data(rank) * 0, 3e38)
    dist.reduce(y, dst=0)
    later = y * 0.5 if rank == 0 else data(rank)
    dist.all_reduce(later)


@planted([1], "Distributed.reduce_scatter_tensor.0.forward", "communication")
def one_part_overflows(rank, world, start):
    """Only the second part of what is scattered is too large."""
    start(stack())
    whole = torch.cat([torch.ones(4), torch.full((4,), 3e38)])
    piece = torch.zeros(4)
    dist.reduce_scatter_tensor(piece, whole)
    parts = [torch.zeros(4) for _ in range(world)]
    dist.all_gather(parts, piece * 1.0)


@planted([0], "Torch.exp.0.forward")
def before_broadcast(rank, world, start):
    start(stack())
    x = torch.exp(data(rank) + 1000) if rank == 0 else torch.zeros(4, 8)
    dist.broadcast(x, 0)
    torch.relu(x).sum()


@planted([1], "Torch.exp.0.forward")
def before_all_gather(rank, world, start):
    model = stack()
    start(model)
    shard = torch.exp(data(rank, 8) + (1000 if rank == 1 else 0))
    whole = torch.zeros(8 * world)
    dist.all_gather_into_tensor(whole, shard)
    model(whole.view(world, 8)).sum().backward()
    average(model)


@planted([1], "Distributed.recv.0.forward", "communication")
def buffer_reused_before_it_was_sent(rank, world, start):
    """The sender gives clean values and overwrites them before isend() is done."""
    model = stack(1)
    start(model)
    big = 1 << 22
    if rank == 0:
        values = torch.ones(big)
        work = dist.isend(values, 1, tag=7)
        ctypes.memset(values.data_ptr() + 2 * big, 0xFF, 2 * big)  # an overwrite that is not an op of the dump
        dist.barrier()
        work.wait()
    else:
        got = torch.zeros(big)
        dist.barrier()
        dist.recv(got, 0, tag=7)
        model(got[-32:].view(4, 8)).sum().backward()


@planted([1], "Torch.exp.0.forward")
def exchange_in_a_batch(rank, world, start):
    """batch_isend_irecv around a ring."""
    model = stack(1)
    start(model)
    mine = torch.exp(data(rank) + (1000 if rank == 1 else 0))
    theirs = torch.zeros(4, 8)
    other = (rank + 1) % world
    ops = [dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, theirs, other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    model(theirs).sum().backward()


@planted([0, 1], "Distributed.all_reduce.0.forward", "communication")
def late_sum_overflows(rank, world, start):
    """An asynchronous all_reduce; ops stand between the call and the wait."""
    model = stack(1)
    start(model)
    y = torch.add(data(rank) * 0, 3e38)
    work = dist.all_reduce(y, async_op=True)
    x = model(data(rank))
    work.wait()
    (x * y).sum().backward()


@planted([0], "Tensor.__truediv__.0.forward")
def before_all_to_all(rank, world, start):
    start(stack(1))
    mine = data(rank, 8) / (0.0 if rank == 0 else 1.0)
    theirs = torch.zeros(8)
    dist.all_to_all_single(theirs, mine)
    torch.relu(theirs).sum()


# ---- tensor parallel ----------------------------------------------------------------------------------------------------


@planted([1], "Module.1.up.Linear.forward.0", "parameter")
def weight_of_one_shard(rank, world, start):
    model = parallel_stack(rank)
    if rank == 1:
        model[1].up.weight.data[3, 3] = INF
    start(model)
    model(data(0)).sum().backward()


@planted([0], "Tensor.__mul__")
def backward_of_one_shard(rank, world, start):
    """The gradient becomes too large on the way back, on one rank."""
    model = parallel_stack(rank)
    if rank == 0:
        model[0].down.register_full_backward_hook(lambda m, i, o: tuple(g * 1e38 for g in i))
    start(model)
    (model(data(0)) * 1e3).sum().backward()


# ---- pipeline -----------------------------------------------------------------------------------------------------------


def pipeline(rank, world, start, act, micro_batches=2):
    """Every stage is a model of its own; activations go on by send, gradients come back by send."""
    torch.manual_seed(rank)
    stage = Mlp()
    start(stage)
    for batch in range(micro_batches):
        x = data(batch)
        if rank > 0:
            dist.recv(x, src=rank - 1)
            x.requires_grad_()
        y = act(batch, stage(x))
        if rank + 1 < world:
            dist.send(y.detach(), dst=rank + 1)
            grad = torch.zeros_like(y)
            dist.recv(grad, src=rank + 1)
            y.backward(grad)
        else:
            y.sum().backward()
        if rank > 0:
            dist.send(x.grad, dst=rank - 1)


@planted([0], "Torch.exp.0.forward", worlds=(2,))
def first_stage(rank, world, start):
    pipeline(rank, world, start, lambda batch, y: torch.exp(y + 1000) if rank == 0 else y)


@planted([2], "Torch.exp.1.forward", worlds=(4,))
def third_stage_second_batch(rank, world, start):
    """The first micro-batch is clean everywhere."""
    pipeline(rank, world, start, lambda batch, y: torch.exp(y / 8 + (1000 if batch else 0)) if rank == 2 else y)


@planted([1], "Torch.sqrt.0.backward", worlds=(4,))
def second_stage_backward(rank, world, start):
    pipeline(rank, world, start, lambda batch, y: torch.sqrt(torch.relu(y) * 0) + y if rank == 1 else y)


@planted([3], "Torch.exp.0.forward", worlds=(4,))
def neighbours_with_many_calls(rank, world, start):
    """Ranks 0 and 1 have done far more calls by the time rank 3 goes wrong; call counts say nothing about order."""
    model = stack()
    start(model)
    pair = dist.new_group([0, 1])
    if rank < 2:
        for _ in range(12):
            dist.all_reduce(torch.ones(4), group=pair)
    y = model(data(rank))
    y = torch.exp(y + (1000 if rank == 3 else 0))
    y.mean().backward()
    average(model)


def grid(rank):
    """Tensor parallel in pairs, data parallel across them."""
    tensor = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    return tensor, replicas[rank % 2]


@planted([2], "Module.1.down.Linear.forward.0", "parameter", worlds=(4,))
def grid_bad_weight(rank, world, start):
    tensor, replicas = grid(rank)
    model = parallel_stack(rank % 2, tensor)
    if rank == 2:
        model[1].down.weight.data[1, 1] = INF
    start(model)
    model(data(rank // 2)).sum().backward()
    average(model, replicas)


@planted([0, 2], "Distributed.all_reduce", "communication", worlds=(4,))
def grid_sum_overflows(rank, world, start):
    """Gradients of one replica group are too large together."""
    tensor, replicas = grid(rank)
    model = parallel_stack(rank % 2, tensor)
    start(model)
    (model(data(0)) * 1e-3).sum().backward()
    if rank % 2 == 0:
        model[0].up.weight.grad.fill_(2e38)
    average(model, replicas)


@planted([3], "Torch.exp.0.forward", worlds=(4,))
def expert_of_one_rank(rank, world, start):
    """Tokens go to experts and come back by all_to_all."""
    torch.manual_seed(rank)
    router, expert = nn.Linear(8, 8), Mlp()
    start(nn.Sequential(router, expert))
    got, back = torch.zeros(8, 8), torch.zeros(8, 8)
    dist.all_to_all_single(got, router(data(rank, 8, 8)).detach())
    y = torch.exp(expert(got.requires_grad_()) * (1e3 if rank == 3 else 1e-3))
    dist.all_to_all_single(back, y.detach())
    back.sum()
    y.mean().backward()


@planted([0, 2], "Torch.exp.0.forward", worlds=(4,))
def two_at_once(rank, world, start):
    """Neither can have caused the other."""
    model = stack()
    start(model)
    torch.exp(model(data(rank)) + (1000 if rank in (0, 2) else 0)).mean().backward()
    average(model)


@planted([1], "Torch.exp.0.forward", worlds=(4,))
def one_leads_to_others(rank, world, start):
    """On the other ranks an op with clean inputs fails because of what rank 1 did before."""
    model = stack()
    start(model)
    total = torch.exp(model(data(0)) + (1000 if rank == 1 else 0)).sum().detach()
    dist.all_reduce(total)
    torch.sqrt(model(data(rank)).sum() * total * 0).backward()


@planted([2], "Tensor.__truediv__.0.forward", worlds=(4,))
def one_forward_one_backward(rank, world, start):
    """A pipeline in which forwards and backwards of micro-batches alternate; messages are asynchronous."""
    torch.manual_seed(rank)
    stage, works, batches = Mlp(), [], []
    start(stage)

    def forward(i):
        x = data(i)
        if rank > 0:
            dist.recv(x, rank - 1)
            x.requires_grad_()
        y = stage(x)
        if rank == 2 and i == 2:
            y = y / torch.zeros(8)
        if rank < world - 1:
            works.append(dist.isend(y.detach(), rank + 1))
        batches.append((x, y))

    def backward(i):
        x, y = batches[i]
        if rank < world - 1:
            grad = torch.zeros_like(y)
            dist.recv(grad, rank + 1)
            y.backward(grad)
        else:
            y.sum().backward()
        if rank > 0:
            works.append(dist.isend(x.grad, rank - 1))

    ahead = min(3, world - 1 - rank)
    for i in range(3 + ahead):
        if i < 3:
            forward(i)
        if i >= ahead:
            backward(i - ahead)
    for work in works:
        work.wait()


@planted([2], "Torch.log.0.forward", worlds=(4,))
def loss_of_one_replica(rank, world, start):
    tensor, replicas = grid(rank)
    model = parallel_stack(rank % 2, tensor)
    start(model)
    torch.log(model(data(rank // 2)).abs().sum() * (0.0 if rank == 2 else 1.0)).backward()
    average(model, replicas)


@planted([0], "Torch.exp.0.forward", worlds=(4,))
def through_two_hops(rank, world, start):
    """To ranks 1 and 2 by a broadcast in their group, from there to rank 3 by a message."""
    group = dist.new_group([0, 1, 2])
    model = stack(1)
    start(model)
    x = torch.exp(data(rank) + 1000) if rank == 0 else torch.zeros(4, 8)
    if rank < 3:
        dist.broadcast(x, 0, group=group)
    if rank == 2:
        dist.send(x, 3)
    if rank == 3:
        dist.recv(x, 2)
    model(x).sum().backward()


@planted([1], "Torch.exp.0.forward", worlds=(4,))
def gathered_and_scattered(rank, world, start):
    model = stack(1)
    start(model)
    y = torch.exp(model(data(rank)).detach() + (1000 if rank == 1 else 0))
    parts = [torch.zeros(4, 8) for _ in range(world)] if rank == 0 else None
    dist.gather(y, parts, dst=0)
    mine = torch.zeros(4, 8)
    dist.scatter(mine, [part * 1.0 for part in parts] if rank == 0 else None, src=0)
    model(mine).sum().backward()


# ---- absorbed, hidden -------------------------------------------------------------------------------------


@planted([1], "Tensor.__truediv__.0.forward")
def absorbed_by_nan_to_num(rank, world, start):
    """Wrong, and repaired before it does harm."""
    model = stack(1)
    start(model)
    ratio = data(rank) / (0.0 if rank == 1 else 1.0)
    model(torch.nan_to_num(ratio, 0.0, 0.0, 0.0).detach()).sum().backward()
    average(model)


@planted([0], "Functional.linear.2.forward")
def absorbed_first_then_not(rank, world, start):
    """log(0) is repaired on rank 1; what lasts comes later, from rank 0."""
    model = stack(1)
    start(model)
    x = data(rank)
    if rank == 1:
        x = torch.log(x * 0).clamp(min=-10)
    y = model(x)
    F.linear(y * 0 + 1, torch.full((8, 8), 1e38 if rank == 0 else 1.0)).sum().backward()
    average(model)


@planted([1], "Torch.exp.0.forward")
def gradient_scaler_skips(rank, world, start):
    """GradScaler finds the infinities and leaves out the step; what made them is to be named."""
    model = stack(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    start(model)
    loss = torch.exp(model(data(rank)) + (1000 if rank == 1 else 0)).mean()
    scaler.scale(loss).backward()
    average(model)
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


@planted([1], "Torch.exp.0.forward")
def ddp_hides_the_exchange(rank, world, start):
    """DistributedDataParallel sums up gradients inside C++, where no hook sees it."""
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(stack(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start(model)
    y = torch.exp(model(data(rank)) + (1000 if rank == 1 else 0))
    y.mean().backward()
    optimizer.step()
    model(data(rank)).sum()


# ---- running them -------------------------------------------------------------------------------------------------------


def run_rank(rank, world, port, directory, runs):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=os.path.join(directory, "config.json"))
    for name in runs:
        torch.manual_seed(1)
        RUNS[name](rank, world, lambda model: debugger.start(model=model))
        debugger.stop()
        debugger.step()
        dist.barrier()
    dist.destroy_process_group()


def main():
    world, directory = int(sys.argv[1]), sys.argv[2]
    runs = sys.argv[3:] or list(TRUTH[world])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    children = []
    for rank in range(world):
        child = os.fork()
        if child == 0:
            signal.alarm(TIME_LIMIT)
            code = 1
            try:
                run_rank(rank, world, port, directory, runs)
                code = 0
            finally:  # a child never comes back to the code of its parent
                if code:
                    traceback.print_exc()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    failed = 0
    for _ in list(children):
        child, status = os.wait()
        children.remove(child)
        if status != 0:
            failed = 1
            for other in children:  # they would wait for the one that is gone
                os.kill(other, signal.SIGTERM)
    sys.exit(failed)


if __name__ == "__main__":
    main()

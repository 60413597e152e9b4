"""Runs in which NaN or infinities begin at one to three places, none because of another: `overflow_causes.py DIRECTORY [RUN ...]`.

Each is a step of one dump of two ranks, as in overflow_runs.py. CAUSES says where: (rank, op) in the order of time.
"""

import sys

import overflow_runs
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from overflow_runs import Mlp, average, data, stack

WORLD = 2
CAUSES = {}


def begins(*places):
    def register(run):
        CAUSES[run.__name__] = list(places)
        overflow_runs.RUNS[run.__name__] = run
        return run

    return register


def exp_of(x, here):
    return torch.exp(x + (1000.0 if here else 0.0))


def log_of(x, here):
    """Of zero where it goes wrong."""
    return torch.log(torch.sigmoid(x) * (0.0 if here else 1.0))


def ratio_of(x, here):
    return x / (0.0 if here else 1.0)


# ---- one ----------------------------------------------------------------------------------------------------------------


@begins((1, "Torch.exp.0.forward"))
def one_in_forward(rank, world, start):
    model = stack(2)
    start(model)
    exp_of(model(data(rank)), rank == 1).mean().backward()
    average(model)


@begins((0, "Torch.log.0.forward"))
def one_feeds_two_branches(rank, world, start):
    model = stack(2)
    start(model)
    y = log_of(model(data(rank)), rank == 0)
    (torch.tanh(y) + torch.relu(y * 2)).sum().backward()
    average(model)


@begins((1, "Torch.sqrt.0.backward"))
def one_in_backward(rank, world, start):
    model = stack(2)
    start(model)
    y = torch.sqrt(torch.relu(model(data(rank))) * (0.0 if rank == 1 else 1.0) + (0.0 if rank == 1 else 1.0))
    y.sum().backward()
    average(model)


@begins((0, "Tensor.__truediv__.0.forward"))
def one_then_exchanged_twice(rank, world, start):
    model = stack(1)
    start(model)
    x = ratio_of(model(data(rank)), rank == 0)
    total = x.detach().clone()
    dist.all_reduce(total)
    again = torch.sigmoid(total * 0 + x)
    dist.all_reduce(again.detach())
    again.sum().backward()
    average(model)


@begins((0, "Torch.exp.0.forward"), (1, "Torch.exp.0.forward"))
def one_op_on_both_ranks(rank, world, start):
    model = stack(1)
    start(model)
    exp_of(model(data(rank)), True).mean().backward()
    average(model)


@begins((1, "Functional.linear.0.forward"))
def one_in_half_precision(rank, world, start):
    model = stack(1)
    start(model)
    half = torch.full((8, 8), 300.0 if rank == 1 else 1.0, dtype=torch.half)
    y = F.linear(torch.full((4, 8), 300.0, dtype=torch.half), half).float()
    (model(data(rank)) * y).sum().backward()
    average(model)


@begins((0, "Torch.log.0.forward"))
def one_in_a_loop(rank, world, start):
    """Of the first of three calls; what follows has it in its inputs."""
    model = stack(1)
    start(model)
    x = model(data(rank))
    for i in range(3):
        x = log_of(x, rank == 0 and i == 0)
    x.sum().backward()
    average(model)


# ---- two ----------------------------------------------------------------------------------------------------------------


@begins((0, "Torch.exp.0.forward"), (1, "Torch.log.0.forward"))
def two_ranks(rank, world, start):
    model = stack(2)
    start(model)
    y = model(data(rank))
    y = exp_of(y, True) if rank == 0 else log_of(y, True)
    y.mean().backward()
    average(model)


@begins((1, "Torch.exp.0.forward"), (1, "Torch.log.0.forward"))
def two_branches(rank, world, start):
    model = stack(2)
    start(model)
    a, b = model(data(rank)), model(data(rank + 2))
    (exp_of(a, rank == 1).mean() + log_of(b, rank == 1).mean()).backward()
    average(model)


@begins((0, "Tensor.__truediv__.0.forward"), (0, "Torch.exp.0.forward"))
def two_models(rank, world, start):
    one, other = nn.Sequential(Mlp()), nn.Sequential(Mlp())
    start(nn.ModuleList([one, other]))
    ratio_of(one(data(rank)), rank == 0).sum().backward()
    exp_of(other(data(rank)), rank == 0).sum().backward()


@begins((0, "Torch.exp.0.forward"), (0, "Torch.sqrt.0.backward"))
def two_forward_and_backward(rank, world, start):
    one, other = nn.Sequential(Mlp()), nn.Sequential(Mlp())
    start(nn.ModuleList([one, other]))
    exp_of(one(data(rank)).detach(), rank == 0).sum()
    y = torch.sqrt(torch.relu(other(data(rank))) * (0.0 if rank == 0 else 1.0) + (0.0 if rank == 0 else 1.0))
    y.sum().backward()


@begins((1, "Torch.log.0.forward"), (0, "Torch.exp.0.forward"))
def two_around_an_exchange(rank, world, start):
    """What is exchanged between them is clean."""
    model = stack(1)
    start(model)
    x = model(data(rank))
    log_of(x.detach(), rank == 1).sum()
    clean = x.detach().clone()
    dist.all_reduce(clean)
    exp_of(clean, rank == 0).sum()


@begins((0, "Torch.log.0.forward"))
def one_called_again(rank, world, start):
    """The same function is wrong once more: the same fault."""
    model = stack(1)
    start(model)
    x = model(data(rank))
    log_of(x, rank == 0).sum().backward(retain_graph=True)
    log_of(data(rank), rank == 0).sum()


@begins((0, "Tensor.__truediv__.0.forward"), (1, "Torch.exp.0.forward"))
def two_micro_batches(rank, world, start):
    """A rank each, the second later."""
    model = stack(1)
    start(model)
    ratio_of(model(data(rank)), rank == 0).sum()
    dist.all_reduce(torch.ones(3))
    exp_of(model(data(rank + 2)), rank == 1).sum().backward()


@begins((1, "Torch.exp.0.forward"), (0, "Torch.log.0.forward"))
def two_and_a_mask(rank, world, start):
    """-inf of a mask, which softmax takes, is no cause."""
    model = stack(1)
    start(model)
    x = model(data(rank))
    scores = torch.softmax((x @ x.T).masked_fill(torch.eye(4, dtype=torch.bool), float("-inf")), -1)
    y = exp_of(scores, True) if rank == 1 else log_of(scores + 1, True)
    y.sum().backward()


# ---- three --------------------------------------------------------------------------------------------------------------


@begins((0, "Torch.exp.0.forward"), (0, "Torch.log.0.forward"), (0, "Tensor.__truediv__.0.forward"))
def three_on_one_rank(rank, world, start):
    model = stack(1)
    start(model)
    x = [model(data(rank + i)) for i in range(3)]
    here = rank == 0
    (exp_of(x[0], here).mean() + log_of(x[1], here).mean() + ratio_of(x[2], here).mean()).backward()


@begins((0, "Torch.exp.0.forward"), (1, "Torch.log.0.forward"), (1, "Tensor.__truediv__.0.forward"))
def three_on_two_ranks(rank, world, start):
    model = stack(1)
    start(model)
    a, b = model(data(rank)), model(data(rank + 2))
    if rank == 0:
        exp_of(a, True).sum().backward()
    else:
        (log_of(a, True).sum() + ratio_of(b, True).sum()).backward()


@begins((1, "Torch.exp.0.forward"), (1, "Torch.log.0.forward"), (1, "Torch.sqrt.0.backward"))
def three_with_a_gradient(rank, world, start):
    model = nn.Sequential(Mlp())
    start(model)
    here = rank == 1
    exp_of(data(0), here).sum()
    log_of(data(1), here).sum()
    torch.sqrt(torch.relu(model(data(rank))) * (0.0 if here else 1.0) + (0.0 if here else 1.0)).sum().backward()


@begins((0, "Torch.exp.0.forward"), (1, "Torch.log.0.forward"), (0, "Tensor.__truediv__.0.forward"))
def three_between_exchanges(rank, world, start):
    model = stack(1)
    start(model)
    x = model(data(rank)).detach()
    exp_of(x, rank == 0).sum()
    dist.all_reduce(torch.ones(2))
    log_of(x, rank == 1).sum()
    dist.all_reduce(torch.ones(2))
    ratio_of(x, rank == 0).sum()


@begins((0, "Tensor.__truediv__.0.forward"), (0, "Torch.exp.0.forward"), (0, "Torch.log.0.forward"))
def three_losses(rank, world, start):
    model = stack(1)
    start(model)
    x, here = model(data(rank)), rank == 0
    losses = [ratio_of(x, here).mean(), exp_of(x, here).mean(), log_of(x, here).mean()]
    sum(losses).backward()


if __name__ == "__main__":
    sys.argv[1:1] = [str(WORLD)]
    sys.argv[3:] = sys.argv[3:] or list(CAUSES)
    overflow_runs.main()

"""A small model in the parallel layouts of PyTorch: `torchrun --nproc_per_node N train.py LAYOUT [--tp N] [--fault NAME]`.

LAYOUT is ddp, fsdp, tensor (DTensor), fsdp_tensor (both), sequence (DTensor, norms by SequenceParallel), or hand: column and row
parallel layers as Megatron-LM writes them.
Batches come by a DataLoader, except of rank-local generators (--iterator).
"""

import argparse
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

VOCAB, HIDDEN, LAYERS, ROWS, LENGTH = 64, 16, 3, 4, 8


class Block(nn.Module):
    def __init__(self, up, down, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up, self.down = up, down
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(functional.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    def __init__(self, layer, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.blocks = nn.ModuleList(
            [
                Block(layer("column", HIDDEN, 4 * HIDDEN), layer("row", 4 * HIDDEN, HIDDEN), dropout)
                for _ in range(LAYERS)
            ]
        )
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, ids, labels=None):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits if labels is None else functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def plain(kind, inputs, outputs):
    return nn.Linear(inputs, outputs)


# ---- tensor parallelism by hand


class Copy(torch.autograd.Function):
    """The same on every rank; gradients are added up."""

    @staticmethod
    def forward(ctx, x, group, factor):
        ctx.group, ctx.factor = group, factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        if ctx.group is not None:
            dist.all_reduce(gradient, group=ctx.group)
        return gradient * ctx.factor, None, None


class Reduce(torch.autograd.Function):
    """Summands added up; the gradient is that of each."""

    @staticmethod
    def forward(ctx, x, group, times, factor):
        x = x.clone()
        for _ in range(times):
            dist.all_reduce(x, group=group)
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, None, None


class Column(nn.Module):
    def __init__(self, inputs, outputs, mesh):
        super().__init__()
        self.group, self.factor = mesh.get_group(), 1.0
        whole = nn.Linear(inputs, outputs)
        rank, size = mesh.get_local_rank(), mesh.size()
        self.weight = nn.Parameter(whole.weight.detach().chunk(size, 0)[rank].clone())
        self.bias = nn.Parameter(whole.bias.detach().chunk(size, 0)[rank].clone())

    def forward(self, x):
        return functional.linear(Copy.apply(x, self.group, self.factor), self.weight, self.bias)


class Row(nn.Module):
    def __init__(self, inputs, outputs, mesh):
        super().__init__()
        self.group, self.times, self.factor = mesh.get_group(), 1, 1.0
        whole = nn.Linear(inputs, outputs)
        self.weight = nn.Parameter(whole.weight.detach().chunk(mesh.size(), 1)[mesh.get_local_rank()].clone())
        self.bias = nn.Parameter(whole.bias.detach().clone())

    def forward(self, x):
        return Reduce.apply(functional.linear(x, self.weight), self.group, self.times, self.factor) + self.bias


# ---- layouts


def build(options, mesh):
    """The model of this rank, before faults."""
    torch.manual_seed(0)
    if options.layout == "hand":
        return Net(lambda kind, i, o: (Column if kind == "column" else Row)(i, o, mesh["tp"]), options.dropout)
    net = Net(plain, options.dropout)
    if "tensor" in options.layout and mesh["tp"].size() > 1:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        for block in net.blocks:
            parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if options.layout == "sequence" and mesh["tp"].size() > 1:
        sequence_parallel(net, mesh["tp"])
    if "fsdp" in options.layout:
        from torch.distributed.fsdp import fully_shard

        for block in net.blocks:
            fully_shard(block, mesh=mesh["dp"])
        fully_shard(net, mesh=mesh["dp"])
    return net


def sequence_parallel(net, mesh):
    """A plan as that of torchtitan: norms on a part of the sequence, so that their gradients are partial sums."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    parallelize_module(net, mesh, plan)
    up, down = ColwiseParallel(input_layouts=Shard(1)), RowwiseParallel(output_layouts=Shard(1))
    for block in net.blocks:
        parallelize_module(block, mesh, {"norm": SequenceParallel(), "up": up, "down": down})


def batches(options, mesh):
    drawn = torch.Generator().manual_seed(7)
    ids = torch.randint(0, VOCAB, (16 * ROWS, LENGTH + 1), generator=drawn)
    weights = torch.ones(len(ids), LENGTH)
    weights[1::2, LENGTH // 4 :] = 0  # tokens that do not count: of the odd rows, which the second rank gets
    dp, rank = mesh["dp"].size(), mesh["dp"].get_local_rank()
    if options.iterator:
        for at in range(0, len(ids), dp * ROWS):
            own = slice(at + rank * ROWS, at + (rank + 1) * ROWS)
            yield ids[own], weights[own]
        return
    data = TensorDataset(ids, weights)
    sampler = DistributedSampler(data, dp, rank, shuffle=False)
    yield from DataLoader(data, batch_size=ROWS, sampler=sampler)


def loss_of(options, mesh, logits, ids, weights):
    losses = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    if not options.masked:
        return losses.mean()
    count = weights.sum()
    if options.fault != "local_tokens":
        dist.all_reduce(count, group=mesh["dp"].get_group())
        count /= mesh["dp"].size()
    return (losses * weights.flatten()).sum() / count


def reduce_gradients(net, mesh, options):
    """Of data parallelism by hand, where no wrapper does it."""
    if options.layout not in ("hand", "tensor") or mesh["dp"].size() == 1:
        return
    for name, parameter in net.named_parameters():
        gradient = local(parameter.grad)
        group = mesh["dp"].get_group()
        if options.fault == "wrong_group" and name == "blocks.1.norm.weight":
            group = mesh["tp"].get_group()
        if options.fault == "never_reduced" and name == "blocks.1.up.weight":
            continue
        dist.all_reduce(gradient, group=group)
        if options.fault != "sum":
            gradient /= mesh["dp"].size()


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def clip(net, mesh, options, limit=0.25):
    """The norm of the whole model, of which each rank has shards and replicas; clip_grad_norm_ refuses several meshes."""
    if options.layout in ("ddp", "fsdp", "sequence"):
        return nn.utils.clip_grad_norm_(net.parameters(), limit, foreach=False)
    return None


def step(net, optimizer, mesh, options, micro_batches):
    import faults

    optimizer.zero_grad()
    parts = options.micro_batches
    for ids, weights in micro_batches:
        if options.loss_in_model:
            loss = net(ids[:, :-1], ids[:, 1:])
        else:
            loss = loss_of(options, mesh, net(ids[:, :-1]), ids, weights)
        (loss if options.fault == "micro_batches" else loss / parts).backward()
    reduce_gradients(net, mesh, options)
    faults.after_backward(options.fault, net, mesh)
    clip(net, mesh, options)
    faults.after_clip(options.fault, net, mesh)
    optimizer.step()
    faults.after_step(options.fault, net, mesh)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layout", choices=("ddp", "fsdp", "tensor", "fsdp_tensor", "sequence", "hand"))
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--fault", default="")
    parser.add_argument("--iterator", action="store_true")
    parser.add_argument("--masked", action="store_true")
    parser.add_argument("--loss_in_model", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--micro_batches", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size() // options.tp, options.tp), mesh_dim_names=("dp", "tp"))
    import faults

    net = build(options, mesh)
    if dist.get_world_size() > 1:
        faults.before(options.fault, net, mesh)
    else:
        options.fault = ""
    if options.layout == "ddp":
        net = DistributedDataParallel(net)
        faults.wrapped(options.fault, net.module)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    if options.dropout:
        torch.manual_seed(1 + dist.get_rank() if options.fault == "dropout_differs" else 1)
    fetched = batches(options, mesh)
    while micro_batches := list(itertools.islice(fetched, options.micro_batches)):
        step(net, optimizer, mesh, options, micro_batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

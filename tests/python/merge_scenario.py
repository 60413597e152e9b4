"""A small GPT in parallel layouts on gloo processes, captured: `merge_scenario.py DIRECTORY`.

One launch of four processes writes DIRECTORY/LAYOUT/step0/rank{r} for every layout of LAYOUTS, and the same weights on
one rank to DIRECTORY/one (and DIRECTORY/one_moe, and DIRECTORY/dp2 for two data parallel ranks without other division).
"""

import os
import shutil
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger

WORLD, VOCAB, WIDTH, HEADS, LAYERS, BATCH, SEQ, EXPERTS = 4, 32, 16, 4, 4, 2, 8, 4


@dataclass
class Layout:
    tp: int = 1
    pp: int = 1
    vpp: int = 1
    cp: int = 1
    ep: int = 1
    dp: int = 1
    moe: bool = False
    bug: str = ""

    @property
    def ranks(self):
        return self.tp * self.pp * self.cp * self.ep * self.dp


LAYOUTS = {
    "one": Layout(),
    "one_moe": Layout(moe=True),
    "dp2": Layout(dp=2),
    "tp2": Layout(tp=2),
    "pp2": Layout(pp=2),
    "pp2vpp2": Layout(pp=2, vpp=2),
    "tp2pp2": Layout(tp=2, pp=2),
    "tp2dp2": Layout(tp=2, dp=2),
    "cp2": Layout(cp=2),
    "tp2cp2": Layout(tp=2, cp=2),
    "ep2": Layout(ep=2, moe=True),
    "tp2_shard_bug": Layout(tp=2, bug="shard"),
    "tp4_replica_bug": Layout(tp=4, bug="replica"),
}


class Groups:
    """Ranks of this process along each dimension, tp fastest, then cp, ep, dp, pp."""

    def __init__(self, layout, rank):
        self.layout, self.rank = layout, rank
        sizes = [("tp", layout.tp), ("cp", layout.cp), ("ep", layout.ep), ("dp", layout.dp), ("pp", layout.pp)]
        self.at, self.group, self.ranks = {}, {}, {}
        left, stride = rank, 1
        for name, size in sizes:
            self.at[name] = left % size
            left //= size
            for first in range(layout.ranks):  # all processes make all groups, in the same order
                if (first // stride) % size:
                    continue
                ranks = [first + i * stride for i in range(size)]
                group = dist.new_group(ranks) if size > 1 else None
                if rank in ranks:
                    self.group[name], self.ranks[name] = group, ranks
            stride *= size


class CopyToParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class SumOfParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class GatherSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, size, at):
        ctx.group, ctx.at, ctx.length = group, at, x.shape[0]
        parts = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad[ctx.at * ctx.length : (ctx.at + 1) * ctx.length], None, None, None


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sent, received, group):
        ctx.sizes, ctx.group = (sent, received), group
        out = x.new_empty(sum(received), *x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        sent, received = ctx.sizes
        out = grad.new_empty(sum(sent), *grad.shape[1:])
        dist.all_to_all_single(out, grad.contiguous(), sent, received, group=ctx.group)
        return out, None, None, None


def weights(name, *shape):
    """The same for every layout: drawn by name."""
    seed = sum((i + 1) * ord(c) for i, c in enumerate(name))
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) / shape[-1] ** 0.5


class ColumnParallelLinear(nn.Module):
    def __init__(self, name, rows, columns, groups, bug=False):
        super().__init__()
        tp = groups.layout.tp
        whole = weights(name, rows, columns).chunk(tp)
        self.weight = nn.Parameter(whole[groups.at["tp"]].clone())
        self.group, self.bug = groups.group["tp"], bug

    def forward(self, x):
        if self.group is not None:
            x = CopyToParts.apply(x, self.group)
        x = F.linear(x, self.weight)
        return x * 3 if self.bug else x


class RowParallelLinear(nn.Module):
    def __init__(self, name, rows, columns, groups):
        super().__init__()
        whole = weights(name, rows, columns).chunk(groups.layout.tp, dim=1)
        self.weight = nn.Parameter(whole[groups.at["tp"]].clone())
        self.group = groups.group["tp"]

    def forward(self, x):
        x = F.linear(x, self.weight)
        return x if self.group is None else SumOfParts.apply(x, self.group)


class SelfAttention(nn.Module):
    def __init__(self, name, groups):
        super().__init__()
        self.groups, self.heads = groups, HEADS // groups.layout.tp
        self.linear_qkv = ColumnParallelLinear(f"{name}.qkv", 3 * WIDTH, WIDTH, groups)
        self.linear_proj = RowParallelLinear(f"{name}.proj", WIDTH, WIDTH, groups)

    def forward(self, x):  # sequence, batch, width
        length, batch = x.shape[:2]
        q, k, v = self.linear_qkv(x).view(length, batch, self.heads, -1).chunk(3, dim=-1)
        cp, at = self.groups.layout.cp, self.groups.at["cp"]
        if cp > 1:
            k, v = (GatherSequence.apply(t, self.groups.group["cp"], cp, at) for t in (k, v))
        scores = torch.einsum("sbhd,tbhd->bhst", q, k) / q.shape[-1] ** 0.5
        own = torch.arange(length) + at * length
        scores = scores.masked_fill(torch.arange(k.shape[0])[None, :] > own[:, None], -1e4)
        mixed = torch.einsum("bhst,tbhd->sbhd", torch.softmax(scores, dim=-1), v)
        return self.linear_proj(mixed.reshape(length, batch, -1))


class MLP(nn.Module):
    def __init__(self, name, groups, bug=False):
        super().__init__()
        self.linear_fc1 = ColumnParallelLinear(f"{name}.fc1", 2 * WIDTH, WIDTH, groups, bug)
        self.linear_fc2 = RowParallelLinear(f"{name}.fc2", WIDTH, 2 * WIDTH, groups)

    def forward(self, x):
        return self.linear_fc2(F.gelu(self.linear_fc1(x)))


class Expert(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.weight = nn.Parameter(weights(name, WIDTH, WIDTH))

    def forward(self, x):
        return torch.tanh(F.linear(x, self.weight))


class Experts(nn.Module):
    def __init__(self, name, groups):
        super().__init__()
        local = EXPERTS // groups.layout.ep
        first = groups.at["ep"] * local
        self.local_experts = nn.ModuleList(Expert(f"{name}.{first + i}") for i in range(local))

    def forward(self, x, counts):  # tokens in the order of the experts
        return torch.cat([expert(part) for expert, part in zip(self.local_experts, x.split(counts))])


class MoE(nn.Module):
    def __init__(self, name, groups):
        super().__init__()
        self.groups = groups
        self.gate = nn.Parameter(weights(f"{name}.gate", EXPERTS, WIDTH))
        self.experts = Experts(f"{name}.experts", groups)

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        chosen = F.linear(tokens, self.gate).argmax(dim=-1)
        order = torch.argsort(chosen, stable=True)
        counts = torch.bincount(chosen, minlength=EXPERTS)
        tokens, ep = tokens[order], self.groups.layout.ep
        if ep > 1:
            group = self.groups.group["ep"]
            theirs = torch.empty_like(counts)
            dist.all_to_all_single(theirs, counts, group=group)
            sent = counts.view(ep, -1).sum(1).tolist()
            table = theirs.view(ep, -1)  # by sender and local expert
            received = table.sum(1).tolist()
            tokens = Exchange.apply(tokens, sent, received, group)
            # From the order of senders to that of experts, and back.
            expert_of = torch.cat([torch.repeat_interleave(torch.arange(table.shape[1]), row) for row in table])
            by_expert = torch.argsort(expert_of, stable=True)
            out = self.experts(tokens[by_expert], table.sum(0).tolist())
            tokens = Exchange.apply(out[torch.argsort(by_expert)], received, sent, group)
        else:
            tokens = self.experts(tokens, counts.tolist())
        return tokens[torch.argsort(order)].view_as(x)


class LayerNorm(nn.LayerNorm):
    def __init__(self, bug=False):
        super().__init__(WIDTH)
        self.bug = bug

    def forward(self, x):
        x = super().forward(x)
        return x + 0.01 if self.bug else x


class TransformerLayer(nn.Module):
    def __init__(self, index, groups):
        super().__init__()
        here = index == 1 and groups.at["tp"] == 1
        bug = groups.layout.bug if here else ""
        self.input_layernorm = LayerNorm()
        self.self_attention = SelfAttention(f"layer{index}.attention", groups)
        self.pre_mlp_layernorm = LayerNorm(bug == "replica")
        name = f"layer{index}.mlp"
        self.mlp = MoE(name, groups) if groups.layout.moe else MLP(name, groups, bug == "shard")

    def forward(self, x):
        x = x + self.self_attention(self.input_layernorm(x))
        return x + self.mlp(self.pre_mlp_layernorm(x))


class TransformerBlock(nn.Module):
    def __init__(self, layers, groups, last):
        super().__init__()
        self.layers = nn.ModuleList(TransformerLayer(i, groups) for i in layers)
        self.final_layernorm = LayerNorm() if last else None

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x if self.final_layernorm is None else self.final_layernorm(x)


class Embedding(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups
        self.word = nn.Parameter(weights("word", VOCAB, WIDTH) * 4)
        self.position = nn.Parameter(weights("position", SEQ, WIDTH) * 4)

    def forward(self, ids):  # batch, sequence
        at, length = self.groups.at["cp"], ids.shape[1]
        positions = self.position[at * length : (at + 1) * length]
        return (F.embedding(ids, self.word) + positions).transpose(0, 1)


class OutputLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(weights("head", VOCAB, WIDTH))

    def forward(self, x):
        return F.linear(x, self.weight)


class GPTModel(nn.Module):
    def __init__(self, layers, groups, first, last):
        super().__init__()
        self.embedding = Embedding(groups) if first else None
        self.decoder = TransformerBlock(layers, groups, last)
        self.output_layer = OutputLayer() if last else None
        self.received = None

    def forward(self, ids):
        x = self.embedding(ids) if self.embedding is not None else self.received
        x = self.decoder(x)
        return x if self.output_layer is None else self.output_layer(x)


class Chunk(nn.Module):
    def __init__(self, *args):
        super().__init__()
        self.module = GPTModel(*args)

    def forward(self, ids):
        return self.module(ids)


def chunks_of(layout, groups):
    """The parts of the model that this rank holds."""
    parts = layout.pp * layout.vpp
    size = LAYERS // parts
    out = []
    for v in range(layout.vpp):
        part = v * layout.pp + groups.at["pp"]
        layers = range(part * size, (part + 1) * size)
        out.append(Chunk(layers, groups, part == 0, part == parts - 1))
    return out


def own_ids(layout, groups):
    ids = torch.randint(VOCAB, (2 * BATCH, SEQ), generator=torch.Generator().manual_seed(5))
    if layout.dp > 1:
        ids = ids.chunk(layout.dp)[groups.at["dp"]]
    elif layout.ep > 1:
        ids = ids.chunk(layout.ep)[groups.at["ep"]]
    elif not layout.moe:
        ids = ids[:BATCH]
    return ids.chunk(layout.cp, dim=1)[groups.at["cp"]]


def train(layout, groups, chunks):
    """One step: forward through all parts of the pipeline, then backward."""
    ids, stage, stages = own_ids(layout, groups), groups.at["pp"], layout.pp
    shape = (SEQ // layout.cp, ids.shape[0], WIDTH)
    peers, group = groups.ranks["pp"], groups.group["pp"]
    received, sent = [], []
    for v, chunk in enumerate(chunks):
        if v > 0 or stage > 0:
            x = torch.empty(shape)
            dist.recv(x, src=peers[stage - 1], group=group)
            chunk.module.received = x.requires_grad_()
        received.append(chunk.module.received)
        out = chunk(ids)
        sent.append(out)
        if stage + 1 < stages or v + 1 < len(chunks):
            dist.send(out.detach().contiguous(), dst=peers[(stage + 1) % stages], group=group)
    for v in reversed(range(len(chunks))):
        if stage + 1 < stages or v + 1 < len(chunks):
            grad = torch.empty(shape)
            dist.recv(grad, src=peers[(stage + 1) % stages], group=group)
            sent[v].backward(grad)
        else:
            labels = ids.transpose(0, 1).reshape(-1)
            F.cross_entropy(sent[v].reshape(-1, VOCAB), labels).backward()
        if received[v] is not None:
            dist.send(received[v].grad.contiguous(), dst=peers[stage - 1], group=group)


def work(rank, directory, rendezvous):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(WORLD))
    dist.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORLD, timeout=timedelta(seconds=120)
    )
    debugger = PrecisionDebugger(dump_path=str(directory / "dump"), task="statistics", level="mix")
    for layout in LAYOUTS.values():
        groups = Groups(layout, rank)
        dist.barrier()
        if rank < layout.ranks:
            chunks = chunks_of(layout, groups)
            debugger.start(model=chunks if layout.vpp > 1 else chunks[0])
            train(layout, groups, chunks)
            debugger.stop()
        debugger.step()
    dist.barrier()
    dist.destroy_process_group()


def main():
    directory = Path(sys.argv[1])
    # Forked: torch is imported once.
    mp.start_processes(work, (directory, directory / "rendezvous"), nprocs=WORLD, start_method="fork")
    for i, name in enumerate(LAYOUTS):
        (directory / name).mkdir()
        shutil.move(directory / "dump" / f"step{i}", directory / name / "step0")


if __name__ == "__main__":
    main()

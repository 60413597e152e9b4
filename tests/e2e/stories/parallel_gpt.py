"""A GPT cut as Megatron cuts it: tensor parallel within a group, replicas over the others."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from work import VOCABULARY, Work, next_token_loss, tokens_of

WIDTH = 16


def groups_of(world, tensor):
    """The tensor parallel group and the data parallel group of this rank; every rank makes all of them."""
    rank = dist.get_rank()
    mine = []
    together = [list(range(first, first + tensor)) for first in range(0, world, tensor)]
    apart = [list(range(first, world, tensor)) for first in range(tensor)]
    for ranks in together + apart:
        group = dist.new_group(ranks)
        if rank in ranks:
            mine.append(group)
    return mine


class Enter(torch.autograd.Function):
    """The same input for every rank of a group: their gradients are summed up."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class ColumnParallel(nn.Module):
    def __init__(self, out, width, group):
        super().__init__()
        parts = (torch.randn(out, width) * 0.2).chunk(group.size())
        self.weight = nn.Parameter(parts[group.rank()].clone())
        self.group = group

    def forward(self, x):
        return F.linear(Enter.apply(x, self.group), self.weight)


class RowParallel(nn.Module):
    def __init__(self, out, width, group):
        super().__init__()
        parts = (torch.randn(out, width) * 0.2).chunk(group.size(), dim=1)
        self.weight = nn.Parameter(parts[group.rank()].clone())
        self.group = group

    def reduce(self, x):
        return Reduce.apply(x, self.group)

    def forward(self, x):
        return self.reduce(F.linear(x, self.weight))


class Attention(nn.Module):
    def __init__(self, group, heads=4):
        super().__init__()
        self.heads = heads // group.size()
        self.linear_qkv = ColumnParallel(3 * WIDTH, WIDTH, group)
        self.linear_proj = RowParallel(WIDTH, WIDTH, group)

    def forward(self, x):
        parts = self.linear_qkv(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = parts.chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.linear_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.linear_fc1 = ColumnParallel(4 * WIDTH, WIDTH, group)
        self.linear_fc2 = RowParallel(WIDTH, 4 * WIDTH, group)

    def forward(self, x):
        return self.linear_fc2(F.silu(self.linear_fc1(x)))


class Layer(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.input_layernorm, self.pre_mlp_layernorm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.self_attention = Attention(group)
        self.mlp = Mlp(group)

    def forward(self, x):
        x = x + self.self_attention(self.input_layernorm(x))
        return x + self.mlp(self.pre_mlp_layernorm(x))


class Gpt(nn.Module):
    def __init__(self, group, layers=3):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(group) for _ in range(layers))
        self.final_layernorm = nn.LayerNorm(WIDTH)
        self.output_layer = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output_layer(self.final_layernorm(x))


class ParallelWork(Work):
    """Replicas average their gradients."""

    def __init__(self, model, batch, group):
        super().__init__(model, batch, next_token_loss, clip=None)
        self.group = group

    def reduce_gradients(self):
        if self.group.size() == 1:
            return
        with torch.no_grad():
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad, group=self.group)
                parameter.grad.div_(self.group.size())


def gpt(tensor):
    """A builder: `tensor` ranks share a replica, the others are further replicas with a batch of their own."""

    def make(rank, world):
        together, apart = groups_of(world, tensor)
        model = Gpt(together)
        batches = tokens_of(2 * apart.size(), 8).chunk(apart.size())
        return ParallelWork(model, batches[apart.rank()], apart)

    return make

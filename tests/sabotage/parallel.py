"""The same on two processes: tensor, data, pipeline and expert parallel, cut as Megatron cuts them."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from work import VOCABULARY, MiniGpt, Work, mini_gpt, next_token_loss, tokens_of


class CopyToRanks(torch.autograd.Function):
    """The same input on every rank: its gradients are summed up."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class ColumnParallel(nn.Module):
    def __init__(self, weight, rank, world):
        super().__init__()
        self.weight = nn.Parameter(weight.chunk(world, dim=0)[rank].clone())

    def enter(self, x):
        return CopyToRanks.apply(x)

    def forward(self, x):
        return F.linear(self.enter(x), self.weight)


class RowParallel(nn.Module):
    def __init__(self, weight, rank, world):
        super().__init__()
        self.weight = nn.Parameter(weight.chunk(world, dim=1)[rank].clone())
        self.bias = nn.Parameter(torch.full((weight.shape[0],), 0.1))

    def reduce(self, x):
        return SumOverRanks.apply(x)

    def forward(self, x):
        return self.reduce(F.linear(x, self.weight)) + self.bias


class ParallelBlock(nn.Module):
    def __init__(self, rank, world, width=16, heads=4):
        super().__init__()
        self.heads = heads // world
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (ColumnParallel(torch.randn(width, width) * 0.2, rank, world) for _ in range(3))
        self.out = RowParallel(torch.randn(width, width) * 0.2, rank, world)
        self.up = ColumnParallel(torch.randn(2 * width, width) * 0.2, rank, world)
        self.down = RowParallel(torch.randn(width, 2 * width) * 0.2, rank, world)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ParallelGpt(nn.Module):
    def __init__(self, rank, world, width=16, layers=3):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(ParallelBlock(rank, world, width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def tensor_parallel(rank, world):
    return Work(ParallelGpt(rank, world), tokens_of(2, 8), next_token_loss, clip=None)


class DataParallelWork(Work):
    """Every rank has its share of the data; gradients are averaged after backward."""

    def average(self, grad, world):
        dist.all_reduce(grad)
        grad.div_(world)

    def reduce_gradients(self):
        world = dist.get_world_size()
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if ".expert." not in name:  # each rank has its own
                    self.average(parameter.grad, world)


def data_parallel(rank, world):
    made = mini_gpt()
    tokens = tokens_of(2 * world, 10)
    return DataParallelWork(made.model, tokens.chunk(world)[rank], next_token_loss)


def ddp(rank, world, **options):
    """torch's own."""
    made = mini_gpt()
    tokens = tokens_of(2 * world, 10)
    model = nn.parallel.DistributedDataParallel(made.model, **{"bucket_cap_mb": 0.02, **options})
    return Work(model, tokens.chunk(world)[rank], next_token_loss)


class PipelineStage(nn.Module):
    def __init__(self, rank):
        super().__init__()
        whole = MiniGpt(layers=4)
        self.embed = whole.embed if rank == 0 else None
        self.blocks = whole.blocks[:2] if rank == 0 else whole.blocks[2:]
        self.norm = whole.norm if rank == 1 else None
        self.head = whole.head if rank == 1 else None

    def forward(self, x):
        x = self.embed(x) if self.embed else x
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) if self.head else x


class PipelineWork(Work):
    """Two stages, two micro batches, all forward and then all backward."""

    def __init__(self, model, batch, rank):
        super().__init__(model, batch, None, clip=None)
        self.rank = rank

    def send(self, x):
        dist.send(x, 1 - self.rank)

    def receive(self, like):
        x = torch.empty_like(like)
        dist.recv(x, 1 - self.rank)
        return x

    def backward(self):
        parts = self.batch.chunk(2)
        kept = []
        for tokens in parts:
            if self.rank == 0:
                out = self.model(tokens)
                self.send(out.detach())
                kept.append(out)
            else:
                entered = self.receive(torch.empty(*tokens.shape, 32)).requires_grad_()
                logits = self.model(entered)
                loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) / len(parts)
                kept.append((entered, loss))
        for item in kept:
            if self.rank == 0:
                item.backward(self.receive(item))
            else:
                item[1].backward()
                self.send(item[0].grad)


def pipeline(rank, world):
    return PipelineWork(PipelineStage(rank), tokens_of(4, 8), rank)


class ExchangeTokens(torch.autograd.Function):
    """Equal parts of the tokens go to the ranks, and come back in backward."""

    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        dist.all_to_all_single(out, grad.contiguous())
        return out


class ExpertParallel(nn.Module):
    """One expert on each rank; the first half of the tokens is for the first."""

    def __init__(self, width, rank):
        super().__init__()
        experts = [nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(2)]
        self.expert = experts[rank]

    def dispatch(self, x):
        return ExchangeTokens.apply(x)

    def combine(self, x):
        return ExchangeTokens.apply(x)

    def forward(self, x):
        return self.combine(self.expert(self.dispatch(x)))


class ExpertNet(nn.Module):
    def __init__(self, rank, width=16):
        super().__init__()
        self.enter = nn.Linear(8, width)
        self.layers = nn.ModuleList(ExpertParallel(width, rank) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        x = self.enter(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(self.norm(x))


def expert_parallel(rank, world):
    model = ExpertNet(rank)
    x, labels = torch.randn(2, 12, 8)[rank], torch.randint(0, 4, (2, 12))[rank]
    return DataParallelWork(model, (x, labels), lambda net, batch: F.cross_entropy(net(batch[0]), batch[1]))

"""Layouts of torch.distributed on two processes, each a model that every layout cuts in its own way.

Sharded data (FSDP1, FSDP2), tensor and sequence parallel by DTensor, the schedules of torch.distributed.pipelining, attention over
parts of the sequence, experts, recomputation and graphs of torch.compile. `MAKERS`: {name: (rank, world) -> Work}.
"""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from parallel import data_parallel, ddp, expert_parallel, tensor_parallel
from torch.utils.checkpoint import checkpoint
from work import VOCABULARY, MiniGpt, Work, mini_gpt, next_token_loss, tokens_of

WORLD = 2


def mesh_of(world):
    return dist.init_device_mesh("cpu", (world,))


def shared_tokens(rank, world):
    return tokens_of(2 * world, 10).chunk(world)[rank]


class ShardedWork(Work):
    """Gradient clipping is left to the layout, whose norms are tensors over all ranks."""

    def __init__(self, model, batch, loss=next_token_loss):
        super().__init__(model, batch, loss, clip=None)
        self.before = self.warm_up  # lazy set-up of the layout, and the first step of the optimizer

    def warm_up(self):
        pass


def fsdp1(rank, world, **options):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = mini_gpt().model
    policy = ModuleWrapPolicy({type(model.blocks[0])})
    wrapped = FullyShardedDataParallel(
        model, auto_wrap_policy=policy, device_id=torch.device("cpu"), use_orig_params=True, **options
    )
    return ShardedWork(wrapped, shared_tokens(rank, world))


def fsdp1_of(**names):
    """Options by the names of torch's own classes, which are imported in the child alone."""

    def make(rank, world):
        from torch.distributed import fsdp

        options = {}
        if "sharding" in names:
            options["sharding_strategy"] = getattr(fsdp.ShardingStrategy, names["sharding"])
        if "half" in names:
            options["mixed_precision"] = fsdp.MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        return fsdp1(rank, world, **options)

    return make


def fsdp2(rank, world, recompute=False, **options):
    from torch.distributed.fsdp import fully_shard

    model = mini_gpt().model
    if recompute:
        recompute_blocks(model)
    mesh = mesh_of(world)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    return ShardedWork(model, shared_tokens(rank, world))


def fsdp2_of(half=False, offload=False, **options):
    def make(rank, world):
        from torch.distributed import fsdp

        if half:
            options["mp_policy"] = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        if offload:
            options["offload_policy"] = fsdp.CPUOffloadPolicy(pin_memory=False)
        return fsdp2(rank, world, **options)

    return make


def recompute_blocks(model):
    def forward(tokens):
        x = model.embed(tokens)
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return model.head(model.norm(x))

    model.forward = forward


class GatedBlock(nn.Module):
    """In parts that a plan of torch.distributed.tensor.parallel can cut: heads are counted from what each rank has."""

    def __init__(self, width, heads):
        super().__init__()
        self.width_of_head = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.gate = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def attention(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, self.width_of_head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class GatedGpt(nn.Module):
    def __init__(self, width=16, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(GatedBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def dtensor(rank, world, sequence=False):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    model, mesh = GatedGpt(), mesh_of(world)
    columns = {name: ColwiseParallel() for name in ("q", "k", "v", "up", "gate")}
    if sequence:
        columns = {name: ColwiseParallel(input_layouts=Shard(1)) for name in columns}
        rows = RowwiseParallel(output_layouts=Shard(1))
        plan = {**columns, "out": rows, "down": rows, "norm1": SequenceParallel(), "norm2": SequenceParallel()}
        outer = {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
    else:
        rows = RowwiseParallel()
        plan, outer = {**columns, "out": rows, "down": rows}, {}
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    parallelize_module(model, mesh, outer)
    return ShardedWork(model, tokens_of(2, 8))


def sequence_parallel(rank, world):
    return dtensor(rank, world, sequence=True)


class Stage(nn.Module):
    """Some blocks of a model; the first has the embedding, the last the head."""

    def __init__(self, whole, blocks, first, last):
        super().__init__()
        self.embed = whole.embed if first else None
        self.blocks = nn.ModuleList(whole.blocks[i] for i in blocks)
        self.norm, self.head = (whole.norm, whole.head) if last else (None, None)

    def forward(self, x):
        x = self.embed(x) if self.embed is not None else x
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) if self.head is not None else x


class ScheduleWork(Work):
    """A schedule of torch.distributed.pipelining runs the step; its first one finds the shapes."""

    def __init__(self, stages, schedule, batch, rank, world):
        super().__init__(nn.ModuleList(stages), batch, None, clip=None)
        self.schedule, self.rank, self.world = schedule, rank, world
        self.losses = []

    def backward(self):
        enters = [self.batch] if self.rank == 0 else []
        target = {"target": self.batch} if self.rank == self.world - 1 else {}
        losses = [] if target else None
        self.schedule.step(*enters, losses=losses, **target)
        self.losses.extend(losses or ())


def pipelined(schedule, parts=1, micro_batches=4):
    """`parts`: stages of each rank."""

    def make(rank, world):
        from torch.distributed import pipelining

        whole, total = MiniGpt(layers=4), parts * world
        own = [rank + i * world for i in range(parts)]
        each = 4 // total
        modules = [Stage(whole, range(i * each, (i + 1) * each), i == 0, i == total - 1) for i in own]
        stages = [pipelining.PipelineStage(m, i, total, torch.device("cpu")) for m, i in zip(modules, own)]

        def loss(logits, tokens):
            return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

        made = getattr(pipelining, schedule)(stages if parts > 1 else stages[0], micro_batches, loss_fn=loss)
        return ScheduleWork(modules, made, tokens_of(2 * micro_batches, 8), rank, world)

    return make


class GatherSequence(torch.autograd.Function):
    """Keys and values of all parts of the sequence; gradients go back to who has the part."""

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, dim=2)

    @staticmethod
    def backward(ctx, grad):
        world = dist.get_world_size()
        parts = torch.stack([part.contiguous() for part in grad.chunk(world, dim=2)])
        out = torch.empty_like(parts[0])
        dist.reduce_scatter_tensor(out, parts.flatten(0, 1))
        return out


class ContextBlock(GatedBlock):
    def gather(self, x):
        return GatherSequence.apply(x)

    def attention(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, self.width_of_head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        first = dist.get_rank() * q.shape[2]
        k, v = self.gather(k), self.gather(v)
        at = torch.arange(first, first + q.shape[2])[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.arange(k.shape[2])[None] <= at)
        return self.out(y.transpose(1, 2).flatten(2))


class ContextWork(Work):
    def average(self, grad, world):
        dist.all_reduce(grad)
        grad.div_(world)

    def reduce_gradients(self):
        with torch.no_grad():
            for parameter in self.model.parameters():
                self.average(parameter.grad, dist.get_world_size())


def context_parallel(rank, world):
    model = GatedGpt()
    model.blocks = nn.ModuleList(ContextBlock(16, 4) for _ in range(2))
    tokens = tokens_of(2, 8 * world + 1)
    inputs, labels = tokens[:, :-1].chunk(world, 1)[rank], tokens[:, 1:].chunk(world, 1)[rank]

    def loss(net, batch):
        return F.cross_entropy(net(batch[0]).flatten(0, 1), batch[1].flatten())

    return ContextWork(model, (inputs, labels), loss, clip=None)


def ddp_of(**options):
    return lambda rank, world: ddp(rank, world, **options)


def ddp_recomputed(rank, world):
    made = mini_gpt()
    recompute_blocks(made.model)
    return Work(nn.parallel.DistributedDataParallel(made.model), shared_tokens(rank, world), next_token_loss)


def compiled(rank, world):
    """Regions that dynamo traces and eager kernels run."""
    made = mini_gpt()
    for block in made.model.blocks:
        block.compile(backend="aot_eager")
    return Work(nn.parallel.DistributedDataParallel(made.model), shared_tokens(rank, world), next_token_loss)


MAKERS = {
    "ddp": ddp,
    "ddp_views": ddp_of(gradient_as_bucket_view=True),
    "ddp_static": ddp_of(static_graph=True),
    "ddp_recomputed": ddp_recomputed,
    "compiled": compiled,
    "fsdp1": fsdp1,
    "fsdp1_grad_op": fsdp1_of(sharding="SHARD_GRAD_OP"),
    "fsdp1_half": fsdp1_of(half=True),
    "fsdp2": fsdp2,
    "fsdp2_kept": fsdp2_of(reshard_after_forward=False),
    "fsdp2_half": fsdp2_of(half=True),
    "fsdp2_offload": fsdp2_of(offload=True),
    "fsdp2_recomputed": fsdp2_of(recompute=True),
    "dtensor": dtensor,
    "sequence_parallel": sequence_parallel,
    "gpipe": pipelined("ScheduleGPipe"),
    "one_f_one_b": pipelined("Schedule1F1B"),
    "interleaved": pipelined("ScheduleInterleaved1F1B", parts=2),
    "context_parallel": context_parallel,
    "expert_parallel": expert_parallel,
    "tensor_parallel": tensor_parallel,
    "data_parallel": data_parallel,
}

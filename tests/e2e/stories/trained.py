"""Runs of real models, some of them on several processes over gloo, each with one fault in the target."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from case import Case
from parallel import pipeline
from parallel_gpt import gpt
from story import Story, Truth
from work import Work, mini_gpt

_kernels = []  # a kernel is replaced as long as its library lives


def replace_kernel(name, kernel):
    """Another kernel for an op of this process, below all hooks, as one with a fault would be."""
    library = torch.library.Library("aten", "IMPL")
    library.impl(name, kernel, "CPU", allow_override=True)
    _kernels.append(library)


# ---- one process ---------------------------------------------------------------------------------------------------------


def rough_gelu(work):
    """The kernel is a few percent off: an approximation that is too coarse."""
    replace_kernel("gelu", lambda x, approximate="none": torch.ops.aten.mul(x, torch.ops.aten.sigmoid(x * 2.0)))


def one_weight(work):
    with torch.no_grad():
        work.model.blocks[2].mlp.down.weight[3, 5] *= 1.5


def one_more_op(work):
    block = work.model.blocks[1]
    right = block.mlp.forward
    block.mlp.forward = lambda x: torch.tanh(right(x))


# ---- several processes ---------------------------------------------------------------------------------------------------


def infinite_weight(work, rank):
    if rank == 2:
        with torch.no_grad():
            work.model.layers[1].mlp.linear_fc1.weight[0, 0] = float("inf")


def nan_of_kernel(work, rank):
    """One core of one device gives NaN."""
    if rank == 3:

        def silu(x):
            out = torch.ops.aten.mul(x, torch.ops.aten.sigmoid(x))
            out.view(-1)[7] = float("nan")
            return out

        replace_kernel("silu", silu)


class Sums(nn.Module):
    """Takes the largest of a value over the ranks, in half precision."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)
        self.operation = dist.ReduceOp.MAX

    def forward(self, x):
        y = F.relu(self.enter(x))
        with torch.no_grad():
            scale = torch.full((16,), 40000.0, dtype=torch.float16)
            dist.all_reduce(scale, op=self.operation)
        return self.head(y * (scale.float() / 40000.0))


def sums(rank, world):
    batches = torch.randn(2 * world, 8).chunk(world)
    return Work(Sums(), batches[rank], lambda model, x: model(x).square().mean(), clip=None)


def summed_too_far(work, rank):
    """40,000 on each rank, in float16: the largest of them is fine, their sum is infinite."""
    work.model.operation = dist.ReduceOp.SUM


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.norm(F.silu(self.enter(x))))


class Averaged(Work):
    def reduce_gradients(self):
        with torch.no_grad():
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(dist.get_world_size())


def features(rank, world):
    batches = torch.randn(2 * world, 8).chunk(world)
    return Averaged(Features(), batches[rank].clone(), lambda model, x: model(x).square().mean(), clip=None)


def nan_in_batch(work, rank):
    if rank == 1:
        work.batch[0, 0] = float("nan")


def scaled_weight(work, rank):
    if rank == 3:
        with torch.no_grad():
            work.model.layers[0].self_attention.linear_proj.weight.mul_(1.25)


def other_batch(work, rank):
    if rank == 1:
        work.batch = torch.randint(3, 48, work.batch.shape, generator=torch.Generator().manual_seed(7))


def eps_of_stage(work, rank):
    if rank == 1:
        work.model.blocks[1].norm2.eps = 1e-2


def case(name, make, bug, about, **options):
    return Case(name, make, bug, (), about, **options)


def story(kind, made, truth, overflow=None):
    return Story(made.name, kind, made.about, truth, overflow), made


FC1 = "layers.1.mlp.linear_fc1"

TRAINED = [
    story(
        "single",
        case("tensor", mini_gpt, rough_gelu, "the kernel of gelu is a coarse approximation", task="tensor"),
        Truth("op", "Functional.gelu.0.forward", "output.0", "blocks.0.mlp.act"),
    ),
    story(
        "single",
        case("md5", mini_gpt, one_weight, "one element of a weight differs; checksums only", summary="md5"),
        Truth("weight", "Functional.linear.11.forward", "input.1", "blocks.2.mlp.down", parameter="weight"),
    ),
    story(
        "single",
        case("extra", mini_gpt, one_more_op, "the target calls tanh behind an MLP"),
        Truth("extra_op", "Torch.tanh.0.forward", "", "blocks.1.mlp"),
    ),
    story(
        "nan",
        case("tp2dp2_nan", gpt(2), infinite_weight, "an infinite weight on rank 2 of 4", world=4),
        Truth(
            *("weight", "Functional.linear.6.forward", "input.1", FC1, (2,), "weight"),
            reached=((3, "Distributed.all_reduce.3.forward"),),
        ),
        Truth("weight", "Functional.linear.6.forward", "input.1", FC1, (2,), "weight"),
    ),
    story(
        "nan",
        case("tp4_kernel", gpt(4), nan_of_kernel, "the kernel of silu gives NaN on rank 3 of 4", world=4),
        *[Truth("op", "Functional.silu.0.forward", "output.0", "layers.0.mlp", (3,))] * 2,
    ),
    story(
        "nan",
        case("dp4_batch", features, nan_in_batch, "NaN in the batch of rank 1 of 4", world=4),
        *[Truth("input", "Functional.linear.0.forward", "input.0", "enter", (1,))] * 2,
    ),
    story(
        "nan",
        case("half_sum", sums, summed_too_far, "a sum over two ranks that float16 does not hold", world=2),
        Truth("argument", "Distributed.all_reduce.0.forward", "input.op", "", (0, 1)),
        Truth("collective", "Distributed.all_reduce.0.forward", "output.0", "", (0, 1)),
    ),
    story(
        "precision",
        case("tp2dp2_weight", gpt(2), scaled_weight, "a weight of rank 3 of 4 is scaled by 1.25", world=4),
        Truth(
            *(
                "weight",
                "Functional.linear.1.forward",
                "input.1",
                "layers.0.self_attention.linear_proj",
                (3,),
                "weight",
            ),
            reached=((2, "Distributed.all_reduce.0.forward"),),
        ),
    ),
    story(
        "precision",
        case("dp4_data", gpt(1), other_batch, "rank 1 of 4 reads another batch", world=4),
        Truth("input", "Functional.embedding.0.forward", "input.0", "embedding", (1,)),
    ),
    story(
        "precision",
        case("pp2_eps", pipeline, eps_of_stage, "a LayerNorm of the second stage has another eps", world=2),
        Truth("argument", "Functional.layer_norm.3.forward", "input.4", "blocks.1.norm2", (1,)),
    ),
]

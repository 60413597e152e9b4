"""Bugs planted on the layouts of layouts.py: one change each, and where it is. The golden run is that of the layout."""

from typing import NamedTuple

import torch
import torch.distributed as dist
from case import Case
from layout_pairs import GOLDENS, TARGETS
from layouts import WORLD
from work import VOCABULARY


class At(NamedTuple):
    """The block of a layout in which bugs are planted: on these ranks, found by this path of attributes."""

    ranks: tuple
    block: str  # as dumps name the module

    def find(self, work):
        return work.model.get_submodule(self.block)


BOTH, SECOND = (0, 1), (1,)
# MiniGpt, in all its wrappers
FREE = {
    "ddp": At(BOTH, "module.blocks.1"),
    "ddp_views": At(SECOND, "module.blocks.1"),
    "ddp_static": At(BOTH, "module.blocks.2"),
    "ddp_recomputed": At(BOTH, "module.blocks.1"),
    "fsdp1": At(BOTH, "_fsdp_wrapped_module.blocks.1._fsdp_wrapped_module"),
    "fsdp1_grad_op": At(SECOND, "_fsdp_wrapped_module.blocks.2._fsdp_wrapped_module"),
    "fsdp1_half": At(BOTH, "_fsdp_wrapped_module.blocks.0._fsdp_wrapped_module"),
    "fsdp2": At(BOTH, "blocks.1"),
    "fsdp2_kept": At(SECOND, "blocks.2"),
    "fsdp2_half": At(BOTH, "blocks.1"),
    "fsdp2_offload": At(SECOND, "blocks.1"),
    "fsdp2_recomputed": At(BOTH, "blocks.1"),
    "gpipe": At(SECOND, "0.blocks.0"),
    "one_f_one_b": At((0,), "0.blocks.1"),
    "interleaved": At(SECOND, "0.blocks.0"),
}
# GatedGpt
CUT = {
    "dtensor": At(BOTH, "blocks.1"),
    "sequence_parallel": At(BOTH, "blocks.1"),
    "context_parallel": At(SECOND, "blocks.1"),
}


def on(at, change):
    """The change, on the ranks that have it."""

    def bug(work, rank):
        if rank in at.ranks:
            change(at.find(work), work)

    return bug


def scores_not_scaled(block, work):
    def weights(q, k):
        scores = torch.matmul(q, k.transpose(-1, -2))
        return torch.softmax(scores.masked_fill(block.attention.mask(q.shape[2]), float("-inf")), dim=-1)

    block.attention.weights = weights


def norm_eps(block, work):
    block.norm2.eps = 1e-2


def residual_dropped(block, work):
    def forward(x):
        return block.mlp(block.norm2(x + block.attention(block.norm1(x))))

    block.forward = forward


def tanh_gelu(block, work):
    block.mlp.act.approximate = "tanh"


def mask_forgotten(block, work):
    block.attention.mask = lambda length: torch.zeros(length, length, dtype=torch.bool)


def other_tokens(block, work):
    work.batch = work.batch.flip(-1)


def learning_rate(block, work):
    for group in work.optimizer.param_groups:
        group["lr"] *= 2


def gate_is_relu(block, work):
    def forward(x):
        x = x + block.attention(block.norm1(x))
        y = block.norm2(x)
        return x + block.down(torch.relu(block.gate(y)) * block.up(y))

    block.forward = forward


def residual_twice(block, work):
    def forward(x):
        x = x + block.attention(block.norm1(x))
        y = block.norm2(x)
        return x + x + block.down(torch.nn.functional.silu(block.gate(y)) * block.up(y))

    block.forward = forward


def case(name, layout, at, change, where, about, **options):
    places = tuple(text.format(block=at.block) for text in where)
    return of_ranks(name, layout, on(at, change), places, about, at.ranks, **options)


KINDS = {
    "scale": (scores_not_scaled, ("{block}.attention", "{block}.attention/*"), "scores are not divided by the root"),
    "eps": (norm_eps, ("{block}.norm2", "{block}.norm2/layer_norm"), "eps of a LayerNorm"),
    "residual": (residual_dropped, ("{block}", "{block}/*"), "a residual is not added"),
    "gelu": (tanh_gelu, ("{block}.mlp.act", "{block}.mlp.act/gelu"), "tanh form of GELU"),
    "mask": (mask_forgotten, ("{block}.attention", "{block}.attention/*"), "the causal mask is forgotten"),
}
CUT_KINDS = {
    "eps": (norm_eps, ("{block}.norm2", "{block}.norm2/layer_norm"), "eps of a LayerNorm"),
    "relu": (gate_is_relu, ("{block}", "{block}/*"), "relu in the place of silu"),
    "twice": (residual_twice, ("{block}", "{block}/*"), "a residual is added twice"),
}
# Which layouts have which, so that all have two and each way of recording has some.
CHOSEN = {
    "scale": "ddp_views ddp_recomputed fsdp1 fsdp2_half gpipe fsdp2_recomputed fsdp2_offload interleaved",
    "eps": "ddp fsdp1_grad_op fsdp2 one_f_one_b interleaved",
    "residual": "ddp_static fsdp1_half fsdp2_kept fsdp2_offload gpipe",
    "gelu": "ddp_recomputed fsdp1 fsdp2_recomputed one_f_one_b fsdp2",
    "mask": "ddp fsdp1_half fsdp2_half fsdp2_kept interleaved",
}
WAYS = ({}, {"task": "tensor"}, {"summary": "md5"}, {"level": "L1"})


def in_layouts():
    count = 0
    for kind, layouts in CHOSEN.items():
        change, where, about = KINDS[kind]
        for layout in layouts.split():
            yield case(
                kind, layout, FREE[layout], change, as_recorded(where, WAYS[count % 4]), about, **WAYS[count % 4]
            )
            count += 1
    for kind, (change, where, about) in CUT_KINDS.items():
        for layout, at in CUT.items():
            yield case(kind, layout, at, change, where, about)


def as_recorded(where, way):
    """Dumps of level L1 have no modules: an api is right wherever it is called."""
    if way.get("level") != "L1":
        return where
    return tuple(
        f"any/{api}" for api in ("layer_norm", "gelu", "matmul", "softmax", "__mul__", "__add__", "masked_fill")
    )


# ---- what only several processes have ------------------------------------------------------------------------------------


def gather_skipped(work, rank):
    """Rank 1 takes its own keys twice."""
    if rank == 1:
        block = work.model.blocks[1]
        gather = block.gather
        block.gather = lambda x: torch.cat([gather(x)[:, :, x.shape[2] :]] * 2, dim=2)


def tokens_rolled(work, rank):
    if rank == 1:
        layer = work.model.layers[1]
        dispatch = layer.dispatch
        layer.dispatch = lambda x: dispatch(x.roll(1, 0))


def experts_not_combined(work, rank):
    if rank == 0:
        layer = work.model.layers[1]
        combine = layer.combine
        layer.combine = lambda x: combine(x) * 0.0 + x


def gradient_summed(work, rank):
    """Summed up and not averaged, all but the first."""
    count = []

    def average(grad, world):
        count.append(1)
        dist.all_reduce(grad)
        grad.div_(1 if len(count) == 3 else world)

    work.average = average


def one_shard_differs(path):
    def bug(work, rank):
        if rank == 1:
            parameter = work.model.get_parameter(path)
            with torch.no_grad():
                getattr(parameter, "_local_tensor", parameter).mul_(1.01)

    return bug


def batch_of_rank(work, rank):
    if rank == 1:
        work.batch = (work.batch * 7 + 1) % VOCABULARY


def labels_shifted(work, rank):
    if rank == 1:
        step = work.schedule.step
        work.schedule.step = lambda *args, target, **others: step(*args, target=target.roll(1, -1), **others)


def stage_input_scaled(work, rank):
    """What arrives at the second stage is halved."""
    if rank == 1:
        stage = work.model[0]
        forward = stage.forward
        stage.forward = lambda x: forward(x * 0.5)


def of_ranks(name, layout, bug, where, about, ranks, **options):
    options.update(world=WORLD, target=TARGETS[layout])
    return Case(f"{name}_{layout}", GOLDENS[layout], bug, where, about, ranks, **options)


EMBED = ("embed.tokens/embedding", "embed.tokens", "embed")
ONLY_HERE = [
    of_ranks(
        "gather_skipped",
        "context_parallel",
        gather_skipped,
        ("blocks.1", "blocks.1/*"),
        "keys of the other part of the sequence are missing",
        SECOND,
    ),
    of_ranks(
        "rolled",
        "expert_parallel",
        tokens_rolled,
        ("layers.1", "layers.1/*"),
        "tokens reach the experts in another order",
        SECOND,
    ),
    of_ranks(
        "not_combined",
        "expert_parallel",
        experts_not_combined,
        ("layers.1", "layers.1/*"),
        "tokens do not come back from the experts",
        BOTH,
    ),
    of_ranks(
        "gradient_summed",
        "data_parallel",
        gradient_summed,
        ("/div_#2", "/div_", "clip_grad/*"),
        "a gradient is not averaged",
        None,
    ),
    of_ranks(
        "shard",
        "fsdp2",
        one_shard_differs("blocks.1.mlp.up.weight"),
        ("/all_gather_single", "blocks.1/all_gather_single", "any/all_gather_single"),
        "a shard of one rank differs",
        SECOND,
    ),
    of_ranks(
        "shard",
        "tensor_parallel",
        one_shard_differs("blocks.1.up.weight"),
        ("blocks.1.up", "blocks.1.up/*"),
        "a shard of one rank differs",
        SECOND,
    ),
    of_ranks(
        "labels",
        "gpipe",
        labels_shifted,
        ("/cross_entropy#0", "/cross_entropy"),
        "labels of the next token but one",
        SECOND,
    ),
    of_ranks(
        "labels",
        "one_f_one_b",
        labels_shifted,
        ("/cross_entropy#0", "/cross_entropy"),
        "labels of the next token but one",
        SECOND,
    ),
    of_ranks(
        "scaled", "gpipe", stage_input_scaled, ("0/__mul__", "0", "0/*"), "what a stage is given is halved", SECOND
    ),
    of_ranks(
        "batch",
        "ddp",
        batch_of_rank,
        ("module.embed.tokens/embedding", "module.embed.tokens", "module.embed"),
        "other data on one rank",
        SECOND,
    ),
    of_ranks("batch", "fsdp2", batch_of_rank, EMBED, "other data on one rank", SECOND),
]

LAYOUT_BUGS = [*in_layouts(), *ONLY_HERE]

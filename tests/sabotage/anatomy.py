"""Faults of a known form, 20 kinds in three models each: what `compare` says of *how* the first difference is wrong is held against
what was planted.
"""

from typing import Callable, NamedTuple, Optional

import torch
import torch.distributed as dist
import torch.nn.functional as F
from bugs import method, scaled_gpt
from parallel import data_parallel, tensor_parallel
from work import bert, llama, mini_gpt, moe, t5, tokens_of


class Form(NamedTuple):
    name: str
    make: Callable  # () or (rank, world) -> Work
    bug: Callable  # (work) or (work, rank)
    kind: str
    parameter: dict  # what must be in the parameter that is told
    about: str
    world: int = 1
    level: str = "mix"
    task: str = "tensor"
    summary: str = "statistics"
    target: Optional[Callable] = None

    def side(self, side):
        return (self.bug, self.target or self.make) if side == "target" else (None, self.make)


def after(module, change):
    """What the module returns is changed."""
    right = module.forward
    module.forward = lambda *args, **kwargs: change(right(*args, **kwargs))


def before(module, change):
    """What the module is given is changed."""
    right = module.forward
    module.forward = lambda x, *args, **kwargs: right(change(x), *args, **kwargs)


# ---- places --------------------------------------------------------------------------------------------------------------


def llama_mlp(work):
    return work.model.model.layers[1].mlp


def llama_out(work):
    return work.model.model.layers[1].self_attn.o_proj


def gpt_mlp(work):
    return work.model.blocks[1].mlp


def gpt_out(work):
    return work.model.blocks[1].attention.out


def bert_dense(work):
    return work.model.bert.encoder.layer[1].intermediate.dense


def bert_out(work):
    return work.model.bert.encoder.layer[1].attention.output.dense


def bert_down(work):
    return work.model.bert.encoder.layer[1].output.dense


def ends(place, change):
    return lambda work: after(place(work), change)


def begins(place, change):
    return lambda work: before(place(work), change)


def weight_of(place, change, name="weight"):
    def bug(work):
        with torch.no_grad():
            parameter = getattr(place(work), name)
            parameter.copy_(change(parameter.clone()))

    return bug


def gradient_of(place, change):
    """The gradient that arrives at the weight, before it is clipped."""

    def bug(work):
        parameter = place(work).weight
        right = work.unscale

        def unscale():
            right()
            with torch.no_grad():
                parameter.grad.copy_(change(parameter.grad.clone()))

        work.unscale = unscale

    return bug


# ---- changes -------------------------------------------------------------------------------------------------------------


def times(factor):
    return lambda x: x * factor


def heads_in_order(order):
    def change(x):
        return x.unflatten(-1, (len(order), -1))[..., order, :].flatten(-2)

    return change


def entries_in_order(axis, order):
    return lambda x: x.index_select(axis, torch.tensor(order)) if x.shape[axis] == len(order) else x


def rolled(shift, axis):
    return lambda x: x.roll(shift, axis)


def late(x):
    """One token later; the first one is zero."""
    return F.pad(x, (0, 0, 1, 0))[:, :-1]


def halves_for_pairs(size):
    def change(x):
        heads = x.unflatten(-1, (-1, size))
        return torch.stack(heads.chunk(2, dim=-1), dim=-1).flatten(-2).flatten(-2)

    return change


def rows_halves_for_pairs(size):
    return lambda weight: halves_for_pairs(size)(weight.t().contiguous()).t()


def through(dtype):
    return lambda x: x.to(dtype).to(x.dtype)


def with_zeros(axis, entries):
    def change(x):
        x = x.clone()
        x.index_fill_(axis, torch.tensor(entries), 0)
        return x

    return change


def with_copy(axis, to, source):
    def change(x):
        order = list(range(x.shape[axis]))
        order[to] = source
        return x.index_select(axis, torch.tensor(order))

    return change


# ---- faults that are more than one change of a tensor --------------------------------------------------------------------


def llama_scale(work):
    work.model.model.layers[0].self_attn.scaling = 1.0


def gpt_scale(work):
    @method(work.model.blocks[1].attention, "weights")
    def weights(self, q, k):
        scores = torch.matmul(q, k.transpose(-1, -2)) * 1.0
        return torch.softmax(scores.masked_fill(self.mask(q.shape[2]), float("-inf")), dim=-1)


def not_unscaled(work):
    work.unscale = lambda: None


def llama_scaled():
    work = llama()
    work.loss_scale = 65536.0
    return work


def bert_scaled():
    work = bert()
    work.loss_scale = 4096.0
    return work


def summed(work, rank):
    work.average = lambda grad, world: dist.all_reduce(grad)


def averaged_twice(work, rank):
    def average(grad, world):
        dist.all_reduce(grad)
        grad.div_(world).div_(world)

    work.average = average


def three_ranks(rank, world):
    return data_parallel(rank, world)


def steps_of(make, count=2):
    def made():
        work = make()
        work.steps = count
        return work

    return made


def not_updated(place):
    """The optimizer never gets to see one weight."""

    def bug(work):
        parameter = place(work).weight
        for group in work.optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p is not parameter]

    return bug


def micro_gpt():
    work = mini_gpt()
    work.batch = tokens_of(4, 12)
    work.micro_batches = work.batch.chunk(2)
    return work


def same_batch_again(work):
    work.micro_batches = (work.micro_batches[0], work.micro_batches[0])


def not_summed_up(work, rank):
    work.model.blocks[1].down.reduce = lambda x: x


def residual_left_out(work):
    @method(work.model.blocks[1], "forward")
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return self.mlp(self.norm2(x))


def bert_with_biases():
    work = bert()
    torch.nn.init.normal_(bert_dense(work).bias)
    return work


def bias_left_out(work):
    dense = bert_dense(work)

    @method(dense, "forward")
    def forward(self, x):
        return F.linear(x, self.weight)


def padded(change):
    """Changes what stands where the batch is padded."""

    def of(work):
        mask = work.batch["attention_mask"].bool()

        def made(x):
            return torch.where(mask[..., None], x, change(x))

        return made

    return of


def padding_in_bert(work):
    after(bert_down(work), padded(lambda x: x + 1.5)(work))


def padding_in_t5(work):
    after(work.model.encoder.block[0].layer[1].DenseReluDense.wo, padded(torch.zeros_like)(work))


def padding_of_ids():
    """Without a mask: the ids end in the same one."""
    work = mini_gpt()
    work.batch = tokens_of(3, 12)
    work.batch[0, 7:] = 1
    work.batch[2, 9:] = 1
    return work


def padding_in_gpt(work):
    keep = (work.batch != 1)[..., None]
    after(gpt_mlp(work), lambda x: torch.where(keep, x, 3 * x.flip(-1)))


def short_bert(work):
    """The batch is cut at seven of ten tokens."""
    work.batch = {key: value[:, :7] if value.dim() == 2 else value for key, value in work.batch.items()}


def short_t5(work):
    work.batch = {key: value[:, :5] if key != "labels" else value for key, value in work.batch.items()}


def short_gpt(work):
    work.batch = work.batch[:, :11]


def rope_pairs(work):
    """The tables of the other form of rotation."""
    after(work.model.model.rotary_emb, lambda tables: tuple(halves_for_pairs(8)(table) for table in tables))


def expert_order(work):
    """Rows of the router stand in another order, as after a checkpoint of other expert ranks."""
    weight_of(lambda w: w.model.blocks[1].mlp.router, entries_in_order(0, [2, 3, 0, 1]))(work)


def clip_at(low, high):
    return lambda x: x.clamp(low, high)


def forms(kind, parameter, *members, **options):
    """Three members (name, make, bug, about) of one kind."""
    out = []
    for name, make, bug, about, *changes in members:
        own = dict(options, **(changes[0] if changes else {}))
        told = own.pop("parameter", parameter)
        own_kind = own.pop("kind", kind)
        out.append(Form(name, make, bug, own_kind, told, about, **own))
    return out


L0, L1, STATISTICS, TWO, THREE = {"level": "L0"}, {"level": "L1"}, {"task": "statistics"}, {"world": 2}, {"world": 3}

FORMS = [
    *forms(
        "factor",
        {"factor": 3.0},
        ("times_3_llama", llama, ends(llama_mlp, times(3.0)), "an output is three times as large", L0),
        ("times_3_gpt", mini_gpt, ends(gpt_mlp, times(3.0)), "an output is three times as large"),
        ("times_3_bert", bert, gradient_of(bert_dense, times(3.0)), "a gradient is three times as large"),
    ),
    *forms(
        "factor",
        {"factor": 0.25, "name": "1/4"},
        ("quarter_llama", llama, weight_of(llama_out, times(0.25)), "a weight was scaled down"),
        ("quarter_gpt", mini_gpt, ends(gpt_mlp, times(0.25)), "an output is divided by four", L0),
        ("quarter_bert", bert, begins(bert_down, times(0.25)), "an input is divided by four"),
    ),
    *forms(
        "factor",
        {"meanings": ["loss_scale"]},
        ("scale_llama", llama_scaled, not_unscaled, "gradients keep the loss scale", {"parameter": {"name": "2^16"}}),
        ("scale_gpt", scaled_gpt, not_unscaled, "gradients keep the loss scale", {"parameter": {"name": "2^10"}}),
        ("scale_bert", bert_scaled, not_unscaled, "gradients keep the loss scale", {"parameter": {"name": "2^12"}}),
    ),
    *forms(
        "factor",
        {"name": "sqrt(8)"},
        ("root_llama", llama, llama_scale, "scores are not divided by the root of the head size"),
        ("root_gpt", mini_gpt, gpt_scale, "scores are not divided by the root of the head size"),
        (
            "root_bert",
            bert,
            ends(bert_out, times(32**-0.5)),
            "divided by the root of the width",
            {"parameter": {"name": "1/sqrt(32)"}, **L0},
        ),
    ),
    *forms(
        "factor",
        {"meanings": ["world_size"]},
        (
            "world_sum",
            data_parallel,
            summed,
            "DP: gradients are summed up but not averaged",
            {"parameter": {"factor": 2.0}, **TWO},
        ),
        (
            "world_twice",
            data_parallel,
            averaged_twice,
            "DP: gradients are averaged twice",
            {"parameter": {"factor": 0.5}, **TWO},
        ),
        (
            "world_three",
            three_ranks,
            summed,
            "DP on three ranks: summed up but not averaged",
            {"parameter": {"factor": 3.0}, **THREE},
        ),
    ),
    *forms(
        "sign",
        {},
        ("sign_llama", llama, ends(llama_mlp, torch.neg), "an output has the other sign", L0),
        ("sign_gpt", mini_gpt, weight_of(gpt_out, torch.neg), "a weight has the other sign"),
        ("sign_bert", bert, gradient_of(bert_down, torch.neg), "a gradient has the other sign"),
    ),
    *forms(
        "offset",
        {"offset": 0.5},
        ("offset_llama", llama, ends(llama_mlp, lambda x: x + 0.5), "a constant is added", L0),
        (
            "offset_gpt",
            mini_gpt,
            weight_of(lambda w: w.model.blocks[1].mlp.up, lambda x: x + 0.5, "bias"),
            "a bias is larger by a constant",
        ),
        ("offset_bert", bert, begins(bert_down, lambda x: x + 0.5), "a constant is added to an input"),
    ),
    *forms(
        "axes",
        {"axes": [0, 1]},
        ("axes_llama", llama, weight_of(llama_out, lambda w: w.t()), "a square weight is transposed"),
        (
            "axes_gpt",
            mini_gpt,
            begins(gpt_out, lambda x: x.transpose(0, 1).reshape(x.shape)),
            "batch and tokens are exchanged",
        ),
        (
            "axes_bert",
            bert,
            begins(bert_out, lambda x: x.unflatten(-1, (4, 8)).transpose(1, 2).reshape(x.shape)),
            "heads are merged without the transpose",
            {"parameter": {"axes": [1, 2], "split": 4}},
        ),
    ),
    *forms(
        "order",
        {"axis": 2, "block": 8},
        ("heads_llama", llama, begins(llama_out, heads_in_order([2, 0, 1, 3])), "heads stand in another order"),
        ("heads_gpt", mini_gpt, begins(gpt_out, heads_in_order([3, 2, 1, 0])), "heads stand in another order"),
        (
            "heads_bert",
            bert,
            weight_of(bert_out, heads_in_order([0, 2, 1, 3])),
            "heads of a weight stand in another order",
            {"parameter": {"axis": 1, "block": 8}},
        ),
    ),
    *forms(
        "order",
        {"axis": 0},
        (
            "rows_llama",
            llama,
            weight_of(lambda w: w.model.model.embed_tokens, entries_in_order(0, [1, 0, *range(2, 48)])),
            "rows of the embedding are exchanged",
            {"parameter": {"axis": 0, "entries": [0, 1]}},
        ),
        (
            "rows_bert",
            bert,
            begins(bert_down, entries_in_order(0, [3, 1, 2, 0])),
            "samples of the batch are exchanged",
            {"parameter": {"axis": 0, "entries": [0, 3]}},
        ),
        ("experts_moe", moe, expert_order, "experts stand in another order", {"parameter": {"axis": 0, "block": 2}}),
    ),
    *forms(
        "shift",
        {"axis": 1, "shift": 1},
        ("shift_llama", llama, ends(llama_mlp, late), "tokens are one place late", L0),
        (
            "shift_gpt",
            mini_gpt,
            begins(gpt_out, rolled(1, 1)),
            "tokens are turned by one",
            {"parameter": {"axis": 1, "shift": 1, "wraps": True}},
        ),
        (
            "shift_bert",
            bert,
            begins(bert_down, rolled(-2, 1)),
            "tokens are two places early",
            {"parameter": {"axis": 1, "shift": -2, "wraps": True}},
        ),
    ),
    *forms(
        "rope",
        {"block": 8},
        ("rope_llama", llama, rope_pairs, "rotary tables are for pairs, the rotation for halves", L0),
        (
            "rope_rows_llama",
            llama,
            weight_of(lambda w: w.model.model.layers[1].self_attn.q_proj, rows_halves_for_pairs(8)),
            "rows of a query weight are those of the other form",
            {"parameter": {"axis": 0, "block": 8}},
        ),
        ("rope_gpt", mini_gpt, begins(gpt_out, halves_for_pairs(8)), "halves of heads for pairs"),
    ),
    *forms(
        "stale",
        {},
        (
            "stale_llama",
            steps_of(llama),
            not_updated(llama_out),
            "a weight is not updated",
            {"parameter": {"source": "step 0"}, **L0},
        ),
        (
            "stale_bert",
            steps_of(bert, 3),
            not_updated(bert_dense),
            "a weight is not updated",
            {"parameter": {"source": "step 0"}, **L0},
        ),
        ("stale_gpt", micro_gpt, same_batch_again, "the second micro batch is the first"),
    ),
    *forms(
        "partial",
        {},
        (
            "partial_tp",
            tensor_parallel,
            not_summed_up,
            "TP: one output is not summed up",
            {"parameter": {"source": "sum over 2 ranks"}, **L1, **TWO},
        ),
        ("partial_gpt", mini_gpt, residual_left_out, "a residual is not added"),
        ("partial_bert", bert_with_biases, bias_left_out, "a bias is not added", L0),
    ),
    *forms(
        "padding",
        {},
        ("padding_bert", bert, padding_in_bert, "values of padding differ", L0),
        ("padding_t5", t5, padding_in_t5, "values of padding are zero", L0),
        ("padding_gpt", padding_of_ids, padding_in_gpt, "values of padding differ, there is no mask", L0),
    ),
    *forms(
        "grid",
        {"dtype": "bfloat16"},
        ("grid_llama", llama, begins(llama_out, through(torch.bfloat16)), "an input went through bfloat16"),
        ("grid_gpt", mini_gpt, begins(gpt_out, through(torch.bfloat16)), "an input went through bfloat16"),
        (
            "grid_bert",
            bert,
            weight_of(bert_dense, through(torch.float16)),
            "a weight went through float16",
            {"parameter": {"dtype": "float16"}},
        ),
    ),
    *forms(
        "zeroed",
        {},
        ("zero_llama", llama, ends(llama_mlp, torch.zeros_like), "an output is zero", L0),
        (
            "zero_gpt",
            mini_gpt,
            begins(gpt_out, with_zeros(2, list(range(8, 16)))),
            "a head is zero",
            {"parameter": {"axis": 2, "count": 8}},
        ),
        (
            "zero_bert",
            bert,
            weight_of(bert_dense, with_zeros(0, [3])),
            "a row of a weight is zero",
            {"parameter": {"axis": 0, "entries": [3]}},
        ),
    ),
    *forms(
        "duplicated",
        {},
        (
            "double_llama",
            llama,
            ends(llama_mlp, with_copy(1, 5, 4)),
            "a token is there twice",
            {"parameter": {"axis": 1, "entries": [5], "sources": [4]}, **L0},
        ),
        (
            "double_gpt",
            mini_gpt,
            weight_of(lambda w: w.model.blocks[1].mlp.up, with_copy(0, 7, 2)),
            "a row of a weight is there twice",
            {"parameter": {"axis": 0, "entries": [7], "sources": [2]}},
        ),
        (
            "double_bert",
            bert,
            begins(bert_down, with_copy(0, 1, 0)),
            "a sample is there twice",
            {"parameter": {"axis": 0, "entries": [1], "sources": [0]}},
        ),
    ),
    *forms(
        "truncated",
        {"axis": 1},
        ("short_bert", bert, short_bert, "the batch is cut", {"parameter": {"axis": 1, "count": 7, "size": 10}}),
        ("short_t5", t5, short_t5, "the batch is cut", {"parameter": {"axis": 1, "count": 5, "size": 9}, **L0}),
        ("short_gpt", mini_gpt, short_gpt, "the batch is cut", {"parameter": {"axis": 1, "count": 11, "size": 12}}),
    ),
    *forms(
        "clipped",
        {},
        (
            "clip_llama",
            llama,
            ends(llama_mlp, lambda x: x.clamp(min=0)),
            "negative values are cut off",
            {"parameter": {"low": 0.0, "high": None}, **L0},
        ),
        (
            "clip_gpt",
            mini_gpt,
            begins(gpt_out, clip_at(-0.25, 0.25)),
            "values are cut off on both sides",
            {"parameter": {"low": -0.25, "high": 0.25}},
        ),
        (
            "clip_bert",
            bert,
            weight_of(bert_dense, clip_at(-0.015625, 0.015625)),
            "a weight is cut off on both sides",
            {"parameter": {"low": -0.015625, "high": 0.015625}},
        ),
    ),
]

# What statistics allow, of the same faults.
OF_STATISTICS = (
    "times_3_llama times_3_gpt times_3_bert quarter_llama quarter_gpt quarter_bert scale_llama scale_gpt scale_bert root_llama"
    " root_gpt root_bert world_sum world_twice world_three sign_llama sign_gpt sign_bert offset_llama offset_gpt offset_bert"
    " zero_llama stale_llama stale_bert stale_gpt grid_llama grid_gpt grid_bert clip_llama clip_gpt clip_bert"
).split()
STATISTICS_FORMS = [
    form._replace(name=f"{form.name}_statistics", task="statistics") for form in FORMS if form.name in OF_STATISTICS
]

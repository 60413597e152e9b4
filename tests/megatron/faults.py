"""Faults for train.py: `before(model, vp_stage)` changes a chunk before it is wrapped, `after(run)` the run that was built."""

import copy
from typing import Callable, NamedTuple, Optional

import torch
from megatron.core import parallel_state


class Fault(NamedTuple):
    about: str
    before: Optional[Callable] = None
    after: Optional[Callable] = None


def at(layer, change, tp_rank=None):
    """The change on the layer with this number in the whole model, on the rank that has it."""

    def before(model, vp_stage):
        if tp_rank is not None and parallel_state.get_tensor_model_parallel_rank() != tp_rank:
            return
        for one in model.decoder.layers:
            if one.layer_number - 1 == layer:
                change(one)

    return before


def of_rank(rank, before):
    """A change on one rank of all."""

    def on_rank(model, vp_stage):
        if torch.distributed.get_rank() == rank:
            before(model, vp_stage)

    return on_rank


def scaled(path, factor):
    def change(layer):
        with torch.no_grad():
            layer.get_parameter(path).mul_(factor)

    return change


def one_row(path, row, value):
    def change(layer):
        with torch.no_grad():
            layer.get_parameter(path)[row] = value

    return change


def norm_eps(path, eps):
    def change(layer):
        layer.get_submodule(path).eps = eps

    return change


def on_output(path, function):
    """A hook on a module: its first result is changed."""

    def change(layer):
        def hook(module, inputs, output):
            return (function(output[0]), *output[1:]) if isinstance(output, tuple) else function(output)

        layer.get_submodule(path).register_forward_hook(hook)

    return change


def residual(factor):
    """What goes around the attention is scaled, in code that no module calls."""

    def change(layer):
        layer.pre_cross_attn_layernorm.register_forward_pre_hook(lambda module, given: (given[0] * factor, *given[1:]))

    return change


def no_reduction(layer):
    """RowParallelLinear leaves its summand as it is."""
    module = layer.mlp.linear_fc2

    def forward(x):
        return torch.nn.functional.linear(x, module.weight), None

    module.forward = forward


def doubled_reduction(layer):
    import megatron.core.tensor_parallel as tp

    module = layer.self_attention.linear_proj
    own = module.forward

    def forward(x):
        out, bias = own(x)
        return tp.reduce_from_tensor_model_parallel_region(out), bias

    module.forward = forward


def kept_apart(path):
    """The summands of a parameter's gradient under sequence parallelism stay on their ranks."""

    def change(layer):
        layer.get_parameter(path).sequence_parallel = False

    return change


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


def softmax_scale(layer):
    layer.self_attention.core_attention.scale_mask_softmax.scale = 2.0


def no_mask(layer):
    def hook(module, arguments):
        scores, mask, *more = arguments
        return (scores, torch.zeros_like(mask), *more)

    layer.self_attention.core_attention.scale_mask_softmax.register_forward_pre_hook(hook)


def masked_row(value):
    """The mask covers a whole row, and puts another value in."""

    def fill(scores, mask):
        mask = mask.clone()
        mask[..., 0, :] = True
        return scores.masked_fill_(mask, value)

    def change(layer):
        layer.self_attention.core_attention.scale_mask_softmax.mask_func = fill

    return change


def swapped_rows(path, a, b):
    def change(layer):
        weight = layer.get_parameter(path)
        with torch.no_grad():
            weight[[a, b]] = weight[[b, a]].clone()

    return change


def gelu(layer):
    layer.mlp.config = copy.copy(layer.mlp.config)
    layer.mlp.config.activation_func = layer.mlp.activation_func = torch.nn.functional.gelu


def wrong_group(layer):
    """RowParallelLinear sums over itself alone."""
    rank = torch.distributed.get_rank()
    layer.self_attention.linear_proj.tp_group = torch.distributed.new_group([rank], use_local_synchronization=True)


def no_backward_reduction(layer):
    """ColumnParallelLinear leaves the gradient of its input as a summand."""
    module = layer.mlp.linear_fc1
    module.forward = lambda x: (torch.nn.functional.linear(x, module.weight), None)


def outside(path, factor, tp_rank=None):
    """Of a parameter that no layer has, on the stage that has it."""

    def before(model, vp_stage):
        if tp_rank is not None and parallel_state.get_tensor_model_parallel_rank() != tp_rank:
            return
        for name, parameter in model.named_parameters():
            if name == path:
                with torch.no_grad():
                    parameter.mul_(factor)

    return before


def rotary(base):
    def before(model, vp_stage):
        if hasattr(model, "rotary_pos_emb"):
            r = model.rotary_pos_emb
            dim = r.inv_freq.numel() * 2
            r.inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))

    return before


def one_expert(layer):
    """Each token goes to the best expert alone."""
    layer.mlp.router.topk = 1


def doubled_weights(layer):
    """What experts give counts twice."""
    for expert in layer.mlp.experts.local_experts:
        own = expert.forward
        expert.forward = lambda hidden, weights, own=own: own(hidden, weights * 2)


def not_combined(run):
    """Gradients stay with the replica that made them."""
    for chunk in run.chunks:
        for group in chunk.bucket_groups:
            group.start_grad_sync = group.finish_grad_sync = lambda *_, **__: None


def regrouped(layer):
    """linear_qkv as queries, keys, values instead of group by group, as other programs write it."""
    attention = layer.self_attention
    groups = attention.num_query_groups_per_partition
    each = attention.hidden_size_per_attention_head
    queries = attention.num_attention_heads_per_partition // groups * each
    for parameter in attention.linear_qkv.parameters():
        rows = parameter.detach().view(groups, queries + 2 * each, -1).split([queries, each, each], 1)
        with torch.no_grad():
            parameter.copy_(torch.cat([part.reshape(-1, part.shape[-1]) for part in rows]).view_as(parameter))


def both(*changes):
    def before(model, vp_stage):
        for change in changes:
            change(model, vp_stage)

    return before


def left_out(path):
    """The optimizer does not know a parameter."""

    def after(run):
        (left,) = [p for chunk in run.chunks for name, p in chunk.named_parameters() if name.endswith(path)]
        for optimizer in getattr(run.optimizer, "chained_optimizers", [run.optimizer]):
            for group in optimizer.optimizer.param_groups:
                group["params"] = [p for p in group["params"] if p is not left]

    return after


FAULTS = {
    "qkv_rank1": Fault("a weight is wrong on one rank", at(2, scaled("self_attention.linear_qkv.weight", 1.3), 1)),
    "fc1_all": Fault("a weight is wrong on all ranks", at(1, scaled("mlp.linear_fc1.weight", 1.1))),
    "proj_rank0": Fault(
        "a weight is wrong on the first rank", at(3, scaled("self_attention.linear_proj.weight", 0.5), 0)
    ),
    "norm_weight": Fault("one element of a norm is wrong", at(2, one_row("input_layernorm.weight", 5, 3.0))),
    "norm_rank1": Fault("a norm's weight is wrong on one rank", at(1, scaled("pre_mlp_layernorm.weight", 1.2), 1)),
    "eps": Fault("another eps", at(1, norm_eps("input_layernorm", 1e-1))),
    "rotary_base": Fault("another base of the rotary embedding", rotary(100)),
    "rotary_slight": Fault("a slightly larger base of the rotary embedding", rotary(10200)),
    "scale": Fault("attention is scaled otherwise", at(2, softmax_scale)),
    "no_reduction": Fault("a reduction is missing", at(1, no_reduction)),
    "doubled_reduction": Fault("a reduction is done twice", at(2, doubled_reduction)),
    "nan_rank1": Fault("a weight holds NaN on one rank", at(3, one_row("mlp.linear_fc2.weight", 1, float("nan")), 1)),
    "fc2_output": Fault("a result is wrong on all ranks", at(2, on_output("mlp.linear_fc2", lambda x: x * 1.05))),
    "gradient": Fault(
        "a gradient is scaled", at(1, on_output("self_attention.linear_proj", lambda x: _Scaled.apply(x, 1.5)))
    ),
    "gradient_rank1": Fault(
        "a gradient is scaled on one rank", at(2, on_output("mlp.linear_fc1", lambda x: _Scaled.apply(x, 2.0)), 1)
    ),
    "key_bias": Fault("a bias is wrong", at(3, one_row("self_attention.linear_qkv.bias", 4, 1.0))),
    "gate_rank0": Fault("a row of the gate is wrong", at(0, one_row("mlp.linear_fc1.weight", 2, 1.0), 0)),
    "mask": Fault("the mask is lost", at(1, no_mask)),
    "heads_rank0": Fault(
        "two rows of a weight are exchanged", at(2, swapped_rows("self_attention.linear_qkv.weight", 0, 9), 0)
    ),
    "gelu": Fault("another activation", at(2, gelu)),
    "wrong_group": Fault("a reduction over the wrong group", at(2, wrong_group)),
    "no_backward_reduction": Fault("a gradient is not summed", at(1, no_backward_reduction)),
    "embedding_rank1": Fault("the embedding is wrong on one rank", outside("embedding.word_embeddings.weight", 1.5, 1)),
    "output_rank0": Fault("the output layer is wrong on one rank", outside("output_layer.weight", 1.2, 0)),
    "slight_rank1": Fault("a weight is slightly wrong on one rank", at(2, scaled("mlp.linear_fc1.weight", 1.05), 1)),
    "left_out": Fault("a parameter is not trained", None, left_out("layers.1.mlp.linear_fc1.weight")),
    "infinite_rank1": Fault("a mask covers a row with infinities on one rank", at(1, masked_row(float("-inf")), 1)),
    "expert_rank1": Fault(
        "an expert's weight is wrong on one rank",
        at(1, scaled("mlp.experts.local_experts.1.linear_fc2.weight", 1.3), 1),
    ),
    "second_expert_rank1": Fault(
        "an expert's weight is wrong where expert parallel rank 1 has it",
        of_rank(1, at(1, scaled("mlp.experts.local_experts.1.linear_fc2.weight", 1.3))),
    ),
    "first_expert_rank0": Fault(
        "an expert's gate and up are wrong on rank 0",
        of_rank(0, at(2, one_row("mlp.experts.local_experts.0.linear_fc1.weight", 3, 1.0))),
    ),
    "expert_all": Fault(
        "an expert is wrong in each share", at(2, scaled("mlp.experts.local_experts.0.linear_fc1.weight", 1.2))
    ),
    "router_rank1": Fault(
        "tokens of one rank go to other experts", of_rank(1, at(1, swapped_rows("mlp.router.weight", 0, 3)))
    ),
    "router_all": Fault("tokens go to other experts", at(2, swapped_rows("mlp.router.weight", 1, 2))),
    "one_expert": Fault("tokens go to one expert instead of two", at(1, one_expert)),
    "doubled_weights_rank1": Fault("weights of experts are doubled on one rank", of_rank(1, at(2, doubled_weights))),
    "not_combined": Fault("gradients are not reduced over replicas", None, not_combined),
    "regrouped": Fault("q, k and v are stacked instead of grouped", at(2, regrouped)),
    "two_weights": Fault(
        "a norm and a later weight are wrong",
        both(at(1, one_row("input_layernorm.weight", 5, 3.0)), at(3, scaled("mlp.linear_fc1.weight", 1.3))),
    ),
    "norm_apart": Fault("the gradient of a norm is not reduced", at(1, kept_apart("input_layernorm.weight"))),
    "residual": Fault("code between modules scales a value", at(2, residual(1.5))),
    "final_norm": Fault("the last norm is wrong", outside("decoder.final_layernorm.weight", 1.1)),
}

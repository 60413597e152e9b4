"""Planted bugs where the runs differ anyway: in how they compute, or in their dtype. Truth as in bugs.py."""

import bugs
import rewrites as re
import torch
import torch.nn.functional as F
from bugs import method
from case import Case
from clean import autocast, in_half
from held_out import scores_transposed, worst_experts

KNOWN = {case.name: case for case in bugs.BUGS}


# ---- bugs of the gated model ------------------------------------------------------------------------------------------------


def scale_forgotten(work):
    attention = work.model.blocks[1].attention
    right = attention.attend
    attention.attend = lambda q, k, v: right(q * attention.size**0.5, k, v)


def relu_for_silu(work):
    @method(work.model.blocks[1].mlp, "forward")
    def forward(self, x):
        return self.down(F.relu(self.gate(x)) * self.up(x))


def weight_scaled(work):
    with torch.no_grad():
        work.model.blocks[1].mlp.up.weight.mul_(1.05)


def norm_weight(work):
    with torch.no_grad():
        work.model.blocks[2].norm1.weight.mul_(0.9)


def branch_dropped(work):
    @method(work.model.blocks[1], "forward")
    def forward(self, x):
        return x + self.attention(self.norm1(x))


def wrong_input(work):
    """The gated layer gets what is not normalised."""

    @method(work.model.blocks[1], "forward")
    def forward(self, x):
        return x + self.attention(self.norm1(x)) + self.mlp(x)


def key_for_query(work):
    attention = work.model.blocks[0].attention
    right = attention.attend
    attention.attend = lambda q, k, v: right(k, q, v)


GATED = {
    scale_forgotten: ("blocks.1.attention", "blocks.1.attention/*"),
    relu_for_silu: ("blocks.1.mlp", "blocks.1.mlp/*"),
    weight_scaled: ("blocks.1.mlp.up", "blocks.1.mlp.up/*", "blocks.1.mlp/linear"),
    norm_weight: ("blocks.2.norm1", "blocks.2.norm1/*"),
    branch_dropped: ("blocks.1", "blocks.1/*", "blocks.1.norm2", "blocks.1.mlp", "blocks.1.norm2/*"),
    wrong_input: (
        "blocks.1",
        "blocks.1.mlp",
        "blocks.1.norm2",
        "blocks.1.mlp.gate",
        "blocks.1.mlp.up",
        "blocks.1.mlp.gate/linear",
        "blocks.1.mlp.up/linear",
        "blocks.1.norm2/*",
        "blocks.1.mlp/*",
    ),
    key_for_query: ("blocks.0.attention", "blocks.0.attention/*"),
}
LATER_CALLS = {
    scores_transposed: ("blocks.2.attention", "blocks.2.attention/*"),
    worst_experts: ("blocks.0.mlp", "blocks.0.mlp/topk"),
}


def places_of(bug):
    """Call numbers are those of the other form."""
    where = GATED.get(bug) or LATER_CALLS.get(bug) or KNOWN[bug.__name__].where
    return tuple(place.partition("#")[0] if not place.startswith("any") else place for place in where)


def on(make, bug, change, **options):
    name = f"{bug.__name__}_on_{change.__name__}" + "".join(f"_{v}" for v in options.values())
    about = f"{bug.__name__} behind {change.__name__}".replace("_", " ")
    return Case(name, make, bug, places_of(bug), about, target=re.changed(make, change), **options)


def in_noise(make, bug, half=in_half):
    name = f"{bug.__name__}_{half.__name__}"
    return Case(name, make, bug, places_of(bug), f"{bug.__name__} in bfloat16".replace("_", " "), target=half(make))


L1 = {"level": "L1"}
ON_TOP = [
    on(re.gated, scale_forgotten, re.split_sum),
    on(re.gated, scale_forgotten, re.silu_by_sigmoid),
    on(re.gated, scale_forgotten, re.rms_norm_in_one_call, task="tensor"),
    on(re.gated, relu_for_silu, re.fused_attention),
    on(re.gated, relu_for_silu, re.values_first),
    on(re.gated, relu_for_silu, re.softmax_by_hand, summary="md5"),
    on(re.gated, weight_scaled, re.residual_last),
    on(re.gated, weight_scaled, re.queries_scaled),
    on(re.gated, weight_scaled, re.rms_norm_divides),
    on(re.gated, norm_weight, re.gate_behind_up),
    on(re.gated, norm_weight, re.einsum_attention),
    on(re.gated, norm_weight, re.calls_swapped),
    on(re.gated, branch_dropped, re.mask_added),
    on(re.gated, branch_dropped, re.rms_norm_in_one_call),
    on(re.gated, wrong_input, re.fused_attention),
    on(re.gated, wrong_input, re.silu_by_sigmoid),
    on(re.gated, key_for_query, re.one_hot_embedding),
    on(re.mini_gpt, bugs.softmax_dim, re.layer_norm_by_hand),
    on(re.mini_gpt, bugs.softmax_dim, re.linear_by_matmul),
    on(re.mini_gpt, bugs.residual_dropped, re.residual_first),
    on(re.mini_gpt, bugs.residual_dropped, re.gelu_by_erf),
    on(re.mini_gpt, bugs.gelu_tanh, re.linear_by_addmm),
    on(re.mini_gpt, bugs.gelu_tanh, re.residual_first),
    on(re.mini_gpt, bugs.position_off_by_one, re.loss_by_log_sum),
    on(re.mini_gpt, bugs.head_order, re.samples_one_by_one),
    on(re.mini_gpt, scores_transposed, re.layer_norm_by_hand),
    on(re.moe, bugs.used_buffer, re.gates_by_softmax),
    on(re.moe, worst_experts, re.layer_norm_by_hand),
    on(re.conv, bugs.batch_norm_in_eval, re.pooling_by_call),
    on(re.conv, bugs.batch_norm_in_eval, re.convolution_by_matmul),
    on(re.conv, bugs.channels_swapped, re.channels_last),
    in_noise(re.gated, relu_for_silu),
    in_noise(re.gated, branch_dropped),
    in_noise(re.gated, scale_forgotten, autocast),
    in_noise(re.mini_gpt, bugs.residual_dropped, autocast),
    in_noise(re.moe, bugs.gates_not_normalised),
]

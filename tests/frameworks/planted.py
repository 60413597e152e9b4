"""Planted bugs: one change in the text of one network, and where it is. The other framework's network is right.

`where` are places of tests/sabotage/case.py: a module, or "module/*" for the functions that it calls itself. `tuned`: the
rules of the comparison were made with this case in view; the others were not looked at until these were right.
"""

from typing import NamedTuple


class Bug(NamedTuple):
    name: str
    side: str  # the framework whose code is wrong; that run is the target
    network: str
    old: str  # occurs once in the file of the network
    new: str
    where: tuple
    about: str
    tuned: bool = False


MS, PT = "mindspore", "pytorch"
BUGS = (
    Bug(
        "ms_norm_eps", MS, "llama", "EPS, ROPE_BASE = 1e-5,", "EPS, ROPE_BASE = 1e-3,",
        ("model.layers.0.attention_norm/*", "model.layers.0.attention_norm"),
        "epsilon of the norms", True,
    ),
    Bug(
        "ms_missing_scale", MS, "llama", "score = self.mul(score, self.inv_norm_factor)", "score = score",
        ("model.layers.0.attention/*", "model.layers.0.self_attn/*"),
        "attention scores without their scale",
    ),
    Bug(
        "ms_gelu_form", MS, "bert", "nn.GELU(approximate=False)", "nn.GELU(approximate=True)",
        ("bert.bert_encoder.layers.0.feed_forward.activation", "bert.bert_encoder.layers.0.feed_forward.activation/*"),
        "GELU by its tanh form", True,
    ),
    Bug(
        "ms_inverted_mask", MS, "bert", "mask = (1.0 - mask) * Tensor", "mask = mask * Tensor",
        ("bert/*",),
        "the padding is attended to, the text is not",
    ),
    Bug(
        "ms_softmax_axis", MS, "bert", "ops.softmax(score, axis=-1)", "ops.softmax(score, axis=-2)",
        ("bert.bert_encoder.layers.0.attention.self_attention/*",),
        "softmax over the wrong axis", True,
    ),
    Bug(
        "ms_norm_position", MS, "vit", "return self.cell(self.norm(x)) + x", "return self.norm(self.cell(x)) + x",
        (
            "transformer.layers.0.0", "transformer.layers.0.0/*", "transformer.layers.0.0.norm",
            "transformer.layers.0.0.norm/*", "transformer.layers.0.0.cell", "blocks.0/*", "blocks.0.norm1",
            "blocks.0.norm1/*",
        ),
        "the norm behind the branch instead of ahead of it",
    ),
    Bug(
        "ms_dropped_residual", MS, "conv", "out = out + identity", "out = out",
        ("layer1/*",),
        "a residual that is not added", True,
    ),
    Bug(
        "ms_batch_norm_eps", MS, "conv", "self.bn1 = nn.BatchNorm2d(outside, eps=1e-5", "self.bn1 = nn.BatchNorm2d(outside, eps=1e-2",
        ("layer1.bn1", "layer1.bn1/*"),
        "epsilon of a batch norm",
    ),
    Bug(
        "ms_exchanged_parts", MS, "fused_attention", "query, key, value = ops.split", "query, value, key = ops.split",
        ("backbone.blocks.0.attention/*", "h.0.attn/*"),
        "key and value of the fused product exchanged", True,
    ),
    Bug(
        "ms_transposed_weight", MS, "fused_attention", '"mapping.weight", "projection.weight")', '"mapping.weight", "output.projection.weight")',
        ("backbone.blocks.0.attention.projection", "backbone.blocks.0.attention.projection/*"),
        "a square weight loaded without transposing it",
    ),
    Bug(
        "ms_router_weights", MS, "moe", "top = mint.div(top, mint.sum(top, -1, keepdim=True))", "top = top * 1.0",
        ("layers.0.ffn.router", "layers.0.ffn.router/*", "blocks.0.moe/*"),
        "weights of the experts that do not sum to one",
    ),
    Bug(
        "ms_lora_scale", MS, "lora", "self.scaling = ALPHA / RANK", "self.scaling = ALPHA",
        ("layers.0.up_proj/*",),
        "the update is not divided by its rank", True,
    ),
    Bug(
        "pt_rope_base", PT, "llama", "EPS, ROPE_BASE = 1e-5, 10000.0", "EPS, ROPE_BASE = 1e-5, 500000.0",
        ("model.rotary_emb", "model.rotary_emb/*", "model.layers.0.self_attn/*"),
        "base of the rotary angles", True,
    ),
    Bug(
        "pt_swapped_halves", PT, "llama", "(-x[..., half:], x[..., :half])", "(x[..., half:], -x[..., :half])",
        ("model.layers.0.self_attn/*", "model.layers.0.attention.apply_rotary_emb/*"),
        "the wrong half of the rotary pair is negated",
    ),
    Bug(
        "pt_repeated_keys", PT, "llama", "x[:, :, None].expand(-1, -1, times, -1, -1)", "x[:, None].expand(-1, times, -1, -1, -1)",
        ("model.layers.0.self_attn/*",),
        "grouped keys repeated in the wrong order", True,
    ),
    Bug(
        "pt_softmax_dtype", PT, "bert", "F.softmax(scores, dim=-1)", "F.softmax(scores.bfloat16(), dim=-1).float()",
        ("bert.encoder.layer.0.attention.self/*",),
        "softmax in bfloat16",
    ),
    Bug(
        "pt_missing_bias", PT, "bert", "self.value = nn.Linear(WIDTH, WIDTH)", "self.value = nn.Linear(WIDTH, WIDTH, bias=False)",
        ("bert.encoder.layer.0.attention.self.value", "bert.encoder.layer.0.attention.self.value/*"),
        "a linear layer without its bias", True,
    ),
    Bug(
        "pt_token_types", PT, "bert", "self.token_type_embeddings(types)", "self.token_type_embeddings(types * 0)",
        (
            "bert.embeddings.token_type_embeddings", "bert.embeddings.token_type_embeddings/*", "bert.embeddings/*",
        ),
        "all tokens of the first type",
    ),
    Bug(
        "pt_leaky_slope", PT, "conv", "F.leaky_relu(self.head_norm(x), 0.1)", "F.leaky_relu(self.head_norm(x))",
        ("/leaky_relu", "act", "act/*"),
        "slope of a leaky ReLU", True,
    ),
    Bug(
        "pt_gate_mix", PT, "gru", "return (1 - z) * n + z * h", "return z * n + (1 - z) * h",
        ("cell/*",),
        "a gate the wrong way round", True,
    ),
    Bug(
        "pt_softmax_time", PT, "gru", "torch.softmax(self.score(states), 1)", "torch.softmax(self.score(states), 0)",
        ("/softmax",),
        "attention over the batch instead of time",
    ),
    Bug(
        "pt_expert_activation", PT, "moe", "F.silu(self.w1(x))", "F.gelu(self.w1(x))",
        ("blocks.0.moe.experts.0/*", "layers.0.ffn.experts.0/*"),
        "GELU in the experts instead of SiLU",
    ),
    Bug(
        "pt_no_positions", PT, "vit", "x = x + self.pos_embed", "x = x * 1",
        ("/__add__", "/__mul__", "/Tensor.__add__"),
        "positions are not added",
    ),
    Bug(
        "pt_mask_diagonal", PT, "fused_attention", "torch.tril(torch.ones(LENGTH, LENGTH))", "torch.tril(torch.ones(LENGTH, LENGTH), 1)",
        ("h.0.attn/*",),
        "every token sees the next one", True,
    ),
)

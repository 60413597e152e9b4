"""The same weights as other programs name and lay them out, from the state dicts of transformers."""

import re

import torch

SIZES = {"vocab_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32}
GROUPED = {**SIZES, "intermediate_size": 48, "num_key_value_heads": 2}
HEADS, GROUPS, HEAD = 4, 2, 8
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
FAMILIES = {
    "Llama": ("LlamaForCausalLM", GROUPED),
    "Qwen2": ("Qwen2ForCausalLM", GROUPED),
    "Qwen3": ("Qwen3ForCausalLM", {**GROUPED, "head_dim": HEAD}),
    "Mixtral": ("MixtralForCausalLM", {**GROUPED, "num_local_experts": 4}),
    "Qwen2Moe": ("Qwen2MoeForCausalLM", {**GROUPED, **MOE, "num_experts": 4, "shared_expert_intermediate_size": 24}),
    "DeepseekV3": (
        "DeepseekV3ForCausalLM",
        {
            **GROUPED,
            **MOE,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "q_lora_rank": 16,
            "kv_lora_rank": 12,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
        },
    ),
    "GPT2": ("GPT2LMHeadModel", {"vocab_size": 96, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}),
    "Bert": ("BertForPreTraining", {**SIZES, "intermediate_size": 64, "max_position_embeddings": 64}),
    "ViT": (
        "ViTForImageClassification",
        {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "image_size": 16,
            "patch_size": 8,
        },
    ),
    "T5": (
        "T5ForConditionalGeneration",
        {"vocab_size": 96, "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 3, "num_heads": 4},
    ),
}


def state_of(family, seed=0):
    """A state dict with transformers' names, as after some steps, and its config."""
    import transformers

    name, sizes = FAMILIES[family]
    model = getattr(transformers, name)
    config = model.config_class(**sizes)
    torch.manual_seed(seed)
    state = model(config).state_dict()
    # Fresh norms are all ones and fresh biases all zeros; tied weights stay one tensor.
    moved = {t.data_ptr(): t.detach() + 0.01 * torch.randn_like(t) for t in state.values()}
    return {n: moved[t.data_ptr()] for n, t in state.items()}, config


def renamed(state, rules):
    """Each rule is a pattern and what stands for it; in this order, each on what the ones before it left."""
    out = {}
    for name, tensor in state.items():
        for pattern, new in rules:
            name = re.sub(pattern, new, name)
        out[name] = tensor
    return out


def _interleaved(q, k, v, groups):
    """As Megatron fuses them: for each group its queries, its key, its value."""
    tail = q.shape[1:]
    return torch.cat([t.reshape(groups, -1, *tail) for t in (q, k, v)], 1).reshape(-1, *tail)


def megatron_decoder(state, groups=GROUPS, grouped_experts=False):
    """Megatron-core with Transformer Engine: LLaMA, Qwen, Mixtral and DeepSeek; layers of the pipeline together."""
    out, left = {}, dict(state)

    def take(name):
        return left.pop(name)

    def mlp(at, to, norm=None):
        out[to + "linear_fc1.weight"] = torch.cat([take(at + "gate_proj.weight"), take(at + "up_proj.weight")])
        out[to + "linear_fc2.weight"] = take(at + "down_proj.weight")
        if norm is not None:
            out[to + "linear_fc1.layer_norm_weight"] = norm

    out["embedding.word_embeddings.weight"] = take("model.embed_tokens.weight")
    layers = 1 + max(int(n.split(".")[2]) for n in state if n.startswith("model.layers."))
    for i in range(layers):
        at, to = f"model.layers.{i}.", f"decoder.layers.{i}."
        attention, own = at + "self_attn.", to + "self_attention."
        if attention + "q_a_proj.weight" in left:
            for old, new in (
                ("q_a_proj.weight", "linear_q_down_proj.weight"),
                ("q_a_layernorm.weight", "linear_q_up_proj.layer_norm_weight"),
                ("q_b_proj.weight", "linear_q_up_proj.weight"),
                ("kv_a_proj_with_mqa.weight", "linear_kv_down_proj.weight"),
                ("kv_a_layernorm.weight", "linear_kv_up_proj.layer_norm_weight"),
                ("kv_b_proj.weight", "linear_kv_up_proj.weight"),
            ):
                out[own + new] = take(attention + old)
            out[to + "input_layernorm.weight"] = take(at + "input_layernorm.weight")
        else:
            for param in ("weight", "bias"):
                if f"{attention}q_proj.{param}" in left:
                    parts = [take(f"{attention}{x}_proj.{param}") for x in "qkv"]
                    out[f"{own}linear_qkv.{param}"] = _interleaved(*parts, groups)
            out[own + "linear_qkv.layer_norm_weight"] = take(at + "input_layernorm.weight")
            for x in "qk":
                if f"{attention}{x}_norm.weight" in left:
                    out[f"{own}{x}_layernorm.weight"] = take(f"{attention}{x}_norm.weight")
        out[own + "linear_proj.weight"] = take(attention + "o_proj.weight")
        norm = take(at + "post_attention_layernorm.weight")
        if at + "mlp.gate.weight" not in left:
            mlp(at + "mlp.", to + "mlp.", norm)
            continue
        out[to + "pre_mlp_layernorm.weight"] = norm
        out[to + "mlp.router.weight"] = take(at + "mlp.gate.weight")
        if at + "mlp.gate.e_score_correction_bias" in left:
            out[to + "mlp.router.expert_bias"] = take(at + "mlp.gate.e_score_correction_bias")
        fc1, fc2 = take(at + "mlp.experts.gate_up_proj"), take(at + "mlp.experts.down_proj")
        for e in range(len(fc1)):
            for n, t in (("linear_fc1", fc1[e]), ("linear_fc2", fc2[e])):
                name = f"{n}.weight{e}" if grouped_experts else f"local_experts.{e}.{n}.weight"
                out[f"{to}mlp.experts.{name}"] = t.clone()
        for shared in ("shared_expert.", "shared_experts."):
            if at + "mlp." + shared + "gate_proj.weight" in left:
                mlp(at + "mlp." + shared, to + "mlp.shared_experts.")
        if at + "mlp.shared_expert_gate.weight" in left:
            out[to + "mlp.shared_experts.gate_weight"] = take(at + "mlp.shared_expert_gate.weight")
    out["decoder.final_layernorm.weight"] = take("model.norm.weight")
    out["output_layer.weight"] = take("lm_head.weight")
    assert not left, list(left)
    return out


def unfused_experts(state, rules=()):
    """A tensor for each expert, as checkpoints are published."""
    out = {}
    for name, t in state.items():
        if name.endswith("experts.gate_up_proj"):
            for e, part in enumerate(t):
                gate, up = part.chunk(2)
                out[name.replace("gate_up_proj", f"{e}.gate_proj.weight")] = gate.clone()
                out[name.replace("gate_up_proj", f"{e}.up_proj.weight")] = up.clone()
        elif name.endswith("experts.down_proj"):
            for e, part in enumerate(t):
                out[name.replace("down_proj", f"{e}.down_proj.weight")] = part.clone()
        else:
            out[name] = t
    return renamed(out, rules)


def megatron_gpt2(state):
    """Megatron-core: biases, fused and interleaved queries, Conv1D the other way round."""
    out = {
        "embedding.word_embeddings.weight": state["transformer.wte.weight"],
        "embedding.position_embeddings.weight": state["transformer.wpe.weight"],
    }
    for i in range(3):
        at, to = f"transformer.h.{i}.", f"decoder.layers.{i}."
        for param in ("weight", "bias"):
            value = state[f"{at}attn.c_attn.{param}"]
            q, k, v = value.chunk(3, -1)
            parts = [x.t() if param == "weight" else x for x in (q, k, v)]
            out[f"{to}self_attention.linear_qkv.{param}"] = _interleaved(*parts, HEADS)
            out[f"{to}self_attention.linear_qkv.layer_norm_{param}"] = state[f"{at}ln_1.{param}"]
            out[f"{to}mlp.linear_fc1.layer_norm_{param}"] = state[f"{at}ln_2.{param}"]
            for old, new in (
                ("attn.c_proj", "self_attention.linear_proj"),
                ("mlp.c_fc", "mlp.linear_fc1"),
                ("mlp.c_proj", "mlp.linear_fc2"),
            ):
                value = state[f"{at}{old}.{param}"]
                out[f"{to}{new}.{param}"] = value.t().contiguous() if param == "weight" else value
    for param in ("weight", "bias"):
        out[f"decoder.final_layernorm.{param}"] = state[f"transformer.ln_f.{param}"]
    return out


def fused_qkv(state, rules):
    """Queries, keys and values one behind the other in one weight, as timm and others have them."""
    out = {}
    for name, t in renamed(state, rules).items():
        if re.search(r"\.[kv]_proj\.", name):
            continue
        if ".q_proj." in name:
            other = [renamed(state, rules)[name.replace(".q_proj.", f".{x}_proj.")] for x in "kv"]
            out[name.replace("q_proj", "qkv")] = torch.cat([t, *other])
        else:
            out[name] = t
    return out


def megatron_t5(state):
    """Megatron-core: cross attention with keys and values fused."""
    out, left = {}, dict(state)
    take = left.pop
    out["embedding.word_embeddings.weight"] = take("shared.weight")
    for gone in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
        take(gone)
    for stack in ("encoder", "decoder"):
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        out[f"{stack}_relative_pos_emb.relative_attention_bias.weight"] = take(bias)
        for i in range(3):
            at, to = f"{stack}.block.{i}.layer.", f"{stack}.layers.{i}."
            q, k, v = (take(f"{at}0.SelfAttention.{x}.weight") for x in "qkv")
            out[to + "self_attention.linear_qkv.weight"] = _interleaved(q, k, v, HEADS)
            out[to + "self_attention.linear_proj.weight"] = take(at + "0.SelfAttention.o.weight")
            out[to + "input_layernorm.weight"] = take(at + "0.layer_norm.weight")
            last = 1
            if stack == "decoder":
                last = 2
                out[to + "pre_cross_attn_layernorm.weight"] = take(at + "1.layer_norm.weight")
                out[to + "cross_attention.linear_q.weight"] = take(at + "1.EncDecAttention.q.weight")
                k, v = (take(f"{at}1.EncDecAttention.{x}.weight").reshape(HEADS, -1, 32) for x in "kv")
                out[to + "cross_attention.linear_kv.weight"] = torch.cat([k, v], 1).reshape(-1, 32)
                out[to + "cross_attention.linear_proj.weight"] = take(at + "1.EncDecAttention.o.weight")
            out[to + "pre_mlp_layernorm.weight"] = take(f"{at}{last}.layer_norm.weight")
            out[to + "mlp.linear_fc1.weight"] = take(f"{at}{last}.DenseReluDense.wi.weight")
            out[to + "mlp.linear_fc2.weight"] = take(f"{at}{last}.DenseReluDense.wo.weight")
        out[f"{stack}.final_layernorm.weight"] = take(f"{stack}.final_layer_norm.weight")
    assert not left, list(left)
    return out


MINDFORMERS_LLAMA = (
    (r"embed_tokens\.weight", "tok_embeddings.embedding_weight"),
    (r"self_attn\.([qkv])_proj", r"attention.w\1"),
    (r"self_attn\.o_proj", "attention.wo"),
    (r"mlp\.gate_proj", "feed_forward.w1"),
    (r"mlp\.down_proj", "feed_forward.w2"),
    (r"mlp\.up_proj", "feed_forward.w3"),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    (r"model\.norm\.", "model.norm_out."),
)
META_LLAMA = (
    (r"^model\.", ""),
    (r"embed_tokens", "tok_embeddings"),
    (r"self_attn\.([qkvo])_proj", r"attention.w\1"),
    (r"mlp\.gate_proj", "feed_forward.w1"),
    (r"mlp\.down_proj", "feed_forward.w2"),
    (r"mlp\.up_proj", "feed_forward.w3"),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("lm_head", "output"),
)
MIXTRAL_PUBLISHED = (
    (r"mlp\.gate\.", "block_sparse_moe.gate."),
    (r"mlp\.experts\.(\d+)\.gate_proj", r"block_sparse_moe.experts.\1.w1"),
    (r"mlp\.experts\.(\d+)\.up_proj", r"block_sparse_moe.experts.\1.w3"),
    (r"mlp\.experts\.(\d+)\.down_proj", r"block_sparse_moe.experts.\1.w2"),
)
MINDFORMERS_EXPERTS = (
    (r"mlp\.gate\.weight", "feed_forward.router.dense.weight"),
    (r"mlp\.gate\.e_score_correction_bias", "feed_forward.router.router.topk_bias"),
    (r"mlp\.experts\.(\d+)\.gate_proj", r"feed_forward.experts.\1.w1"),
    (r"mlp\.experts\.(\d+)\.up_proj", r"feed_forward.experts.\1.w3"),
    (r"mlp\.experts\.(\d+)\.down_proj", r"feed_forward.experts.\1.w2"),
    (r"mlp\.shared_experts?\.gate_proj", "feed_forward.shared_experts.w1"),
    (r"mlp\.shared_experts?\.up_proj", "feed_forward.shared_experts.w3"),
    (r"mlp\.shared_experts?\.down_proj", "feed_forward.shared_experts.w2"),
    (r"mlp\.shared_expert_gate", "feed_forward.shared_experts_gate"),
    *MINDFORMERS_LLAMA,
)
MINDFORMERS_MLA = (
    (r"self_attn\.q_a_proj", "attention.q2l_proj"),
    (r"self_attn\.q_a_layernorm", "attention.lq_norm"),
    (r"self_attn\.q_b_proj", "attention.l2q_proj"),
    (r"self_attn\.kv_a_proj_with_mqa", "attention.kv2l"),
    (r"self_attn\.kv_a_layernorm", "attention.lkv_norm"),
    (r"self_attn\.kv_b_proj", "attention.lkv2kv"),
    *MINDFORMERS_EXPERTS,
)
DEEPSEEK_ORIGINAL = (
    (r"^model\.", ""),
    ("embed_tokens", "embed"),
    ("self_attn", "attn"),
    ("q_a_proj", "wq_a"),
    ("q_b_proj", "wq_b"),
    ("kv_a_proj_with_mqa", "wkv_a"),
    ("kv_b_proj", "wkv_b"),
    ("q_a_layernorm", "q_norm"),
    ("kv_a_layernorm", "kv_norm"),
    ("o_proj", "wo"),
    ("mlp", "ffn"),
    ("gate_proj", "w1"),
    ("down_proj", "w2"),
    ("up_proj", "w3"),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("e_score_correction_bias", "bias"),
    ("lm_head", "head"),
)
MINDFORMERS_GPT2 = (
    (r"transformer\.h\.", "backbone.blocks."),
    (r"ln_([12])\.weight", r"layernorm\1.gamma"),
    (r"ln_([12])\.bias", r"layernorm\1.beta"),
    (r"attn\.c_proj", "attention.projection"),
    (r"attn\.c_attn", "attention.c_attn"),
    (r"mlp\.c_fc", "output.mapping"),
    (r"mlp\.c_proj", "output.projection"),
    (r"transformer\.wte\.weight", "backbone.embedding.word_embedding.embedding_table"),
    (r"transformer\.wpe\.weight", "backbone.embedding.position_embedding.embedding_table"),
    (r"transformer\.ln_f\.weight", "backbone.layernorm.gamma"),
    (r"transformer\.ln_f\.bias", "backbone.layernorm.beta"),
)
PUBLISHED_GPT2 = ((r"^transformer\.", ""),)  # without the head: as the model was published
MINDFORMERS_BERT = (
    (r"bert\.embeddings\.word_embeddings\.weight", "bert.word_embedding.embedding_table"),
    (
        r"bert\.embeddings\.position_embeddings\.weight",
        "bert.embedding_postprocessor.full_position_embedding.embedding_table",
    ),
    (
        r"bert\.embeddings\.token_type_embeddings\.weight",
        "bert.embedding_postprocessor.token_type_embedding.embedding_table",
    ),
    (r"bert\.embeddings\.LayerNorm", "bert.embedding_postprocessor.layernorm"),
    (r"bert\.encoder\.layer\.", "bert.bert_encoder.encoder.blocks."),
    (r"attention\.self\.query", "attention.dense1"),
    (r"attention\.self\.key", "attention.dense2"),
    (r"attention\.self\.value", "attention.dense3"),
    (r"attention\.output\.dense", "attention.projection"),
    (r"attention\.output\.LayerNorm", "layernorm1"),
    (r"intermediate\.dense", "output.mapping"),
    (r"(blocks\.\d+)\.output\.dense", r"\1.output.projection"),
    (r"(blocks\.\d+)\.output\.LayerNorm", r"\1.layernorm2"),
    (r"bert\.pooler\.dense", "bert.dense"),
    (r"cls\.predictions\.transform\.dense", "mlmloss.dense"),
    (r"cls\.predictions\.transform\.LayerNorm", "mlmloss.layernorm"),
    (r"cls\.predictions\.bias", "mlmloss.output_bias"),
    (r"cls\.seq_relationship", "nsploss.dense"),
    (r"(layernorm\d?)\.weight", r"\1.gamma"),
    (r"(layernorm\d?)\.bias", r"\1.beta"),
)
GOOGLE_BERT = (
    (r"\.", "/"),
    (r"layer/(\d+)", r"layer_\1"),
    (r"LayerNorm/weight", "LayerNorm/gamma"),
    (r"LayerNorm/bias", "LayerNorm/beta"),
    (r"_embeddings/weight", "_embeddings"),
    (r"(dense|query|key|value)/weight", r"\1/kernel"),
    (r"cls/predictions/bias", "cls/predictions/output_bias"),
    (r"cls/seq_relationship/weight", "cls/seq_relationship/output_weights"),
    (r"cls/seq_relationship/bias", "cls/seq_relationship/output_bias"),
)
MINDFORMERS_VIT = (
    (r"vit\.embeddings\.cls_token", "vit.cls_tokens"),
    (r"vit\.embeddings\.position_embeddings", "vit.pos_embed"),
    (r"vit\.embeddings\.patch_embeddings\.projection", "vit.patch_embed.proj"),
    (r"vit\.layers\.", "vit.blocks."),
    (r"attention\.q_proj", "attention.dense1"),
    (r"attention\.k_proj", "attention.dense2"),
    (r"attention\.v_proj", "attention.dense3"),
    (r"attention\.o_proj", "attention.projection"),
    (r"layernorm_before\.weight", "layernorm1.gamma"),
    (r"layernorm_before\.bias", "layernorm1.beta"),
    (r"layernorm_after\.weight", "layernorm2.gamma"),
    (r"layernorm_after\.bias", "layernorm2.beta"),
    (r"mlp\.fc1", "output.mapping"),
    (r"mlp\.fc2", "output.projection"),
    (r"vit\.layernorm\.weight", "vit.fc_norm.gamma"),
    (r"vit\.layernorm\.bias", "vit.fc_norm.beta"),
    ("classifier", "vit.head"),
)
TIMM = (
    (r"vit\.embeddings\.cls_token", "cls_token"),
    (r"vit\.embeddings\.position_embeddings", "pos_embed"),
    (r"vit\.embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
    (r"vit\.layers\.", "blocks."),
    (r"attention\.([qkv])_proj", r"attn.\1_proj"),
    (r"attention\.o_proj", "attn.proj"),
    ("layernorm_before", "norm1"),
    ("layernorm_after", "norm2"),
    (r"vit\.layernorm", "norm"),
    ("classifier", "head"),
)
PUBLISHED_VIT = (
    (r"vit\.layers\.", "vit.encoder.layer."),
    (r"attention\.q_proj", "attention.attention.query"),
    (r"attention\.k_proj", "attention.attention.key"),
    (r"attention\.v_proj", "attention.attention.value"),
    (r"attention\.o_proj", "attention.output.dense"),
    (r"mlp\.fc1", "intermediate.dense"),
    (r"mlp\.fc2", "output.dense"),
)
MINDFORMERS_T5 = (
    (r"^shared\.weight", "t5_model.word_embedding.embedding_table"),
    (r"^(en|de)coder\.block\.(\d+)\.layer\.", r"t5_model.tfm_\1coder.blocks.\2."),
    (r"tfm_encoder\.blocks\.(\d+)\.1\.layer_norm\.weight", r"tfm_encoder.blocks.\1.layernorm2.gamma"),
    (r"tfm_decoder\.blocks\.(\d+)\.1\.layer_norm\.weight", r"tfm_decoder.blocks.\1.cross_attention_layernorm.gamma"),
    (r"\.2\.layer_norm\.weight", ".layernorm2.gamma"),
    (r"\.0\.layer_norm\.weight", ".layernorm1.gamma"),
    (r"0\.SelfAttention\.relative", "attention.relative"),
    (r"0\.SelfAttention\.q", "attention.dense1"),
    (r"0\.SelfAttention\.k", "attention.dense2"),
    (r"0\.SelfAttention\.v", "attention.dense3"),
    (r"0\.SelfAttention\.o", "attention.projection"),
    (r"1\.EncDecAttention\.q", "cross_attention.dense1"),
    (r"1\.EncDecAttention\.k", "cross_attention.dense2"),
    (r"1\.EncDecAttention\.v", "cross_attention.dense3"),
    (r"1\.EncDecAttention\.o", "cross_attention.projection"),
    (r"[12]\.DenseReluDense\.wi", "output.mapping"),
    (r"[12]\.DenseReluDense\.wo", "output.projection"),
    (r"^(en|de)coder\.final_layer_norm\.weight", r"t5_model.tfm_\1coder.layernorm.gamma"),
    (r"^(en|de)coder\.embed_tokens\.weight", r"t5_model.tfm_\1coder.word_embedding.embedding_table"),
)


def _stacked(state, rules):
    """MindFormers' experts: one weight of three dimensions for each of gate, up and down."""
    out, stacks = {}, {}
    for name, t in unfused_experts(state, rules).items():
        found = re.match(r"(.*feed_forward)\.experts\.\d+\.(w\d\.weight)", name)
        if found:
            stacks.setdefault(f"{found[1]}.routed_experts.ffn.{found[2]}", []).append(t)
        else:
            out[name] = t
    return out | {name: torch.stack(parts) for name, parts in stacks.items()}


def _google(state):
    """Kernels of TensorFlow lie the other way round."""
    out = renamed(state, GOOGLE_BERT)
    return {n: t.t().contiguous() if n.endswith("kernel") else t for n, t in out.items() if "decoder" not in n}


def _without_head(state):
    return {n: t for n, t in state.items() if n != "lm_head.weight"}


LAYOUTS = {
    "Llama": {
        "Megatron": megatron_decoder,
        "MindFormers": lambda s: renamed(s, MINDFORMERS_LLAMA),
        "Meta": lambda s: renamed(s, META_LLAMA),
    },
    "Qwen2": {"Megatron": megatron_decoder, "MindFormers": lambda s: renamed(s, MINDFORMERS_LLAMA)},
    "Qwen3": {"Megatron": megatron_decoder, "MindFormers": lambda s: renamed(s, MINDFORMERS_LLAMA)},
    "Mixtral": {
        "Megatron": megatron_decoder,
        "Megatron, grouped": lambda s: megatron_decoder(s, grouped_experts=True),
        "MindFormers": lambda s: _stacked(s, MINDFORMERS_EXPERTS),
        "published": lambda s: unfused_experts(s, MIXTRAL_PUBLISHED),
    },
    "Qwen2Moe": {
        "Megatron": megatron_decoder,
        "Megatron, grouped": lambda s: megatron_decoder(s, grouped_experts=True),
        "MindFormers": lambda s: _stacked(s, MINDFORMERS_EXPERTS),
        "published": unfused_experts,
    },
    "DeepseekV3": {
        "Megatron": megatron_decoder,
        "Megatron, grouped": lambda s: megatron_decoder(s, grouped_experts=True),
        "MindFormers": lambda s: _stacked(s, MINDFORMERS_MLA),
        "published": unfused_experts,
        "DeepSeek": lambda s: unfused_experts(s, DEEPSEEK_ORIGINAL),
    },
    "GPT2": {
        "Megatron": megatron_gpt2,
        "MindFormers": lambda s: renamed(_without_head(s), MINDFORMERS_GPT2),
        "published": lambda s: renamed(_without_head(s), PUBLISHED_GPT2),
    },
    "Bert": {"MindFormers": lambda s: renamed(s, MINDFORMERS_BERT), "Google": _google},
    "ViT": {
        "MindFormers": lambda s: renamed(s, MINDFORMERS_VIT),
        "timm": lambda s: fused_qkv(s, TIMM),
        "published": lambda s: renamed(s, PUBLISHED_VIT),
    },
    "T5": {"Megatron": megatron_t5, "MindFormers": lambda s: renamed(s, MINDFORMERS_T5)},
}

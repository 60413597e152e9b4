"""Names of weights in six families of transformers against the words of other frameworks, and against no words at all."""

import hashlib
import json

import pytest
import torch
from graph_cases import run
from publish_weight_names import judge
from weight_layouts import LAYOUTS

pytestmark = pytest.mark.deep

SIZES = {"vocab_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32}
GROUPED = {**SIZES, "intermediate_size": 48, "num_key_value_heads": 2}
LLAMA = (
    ("embed_tokens.weight", "tok_embeddings.embedding_weight"),
    ("self_attn.q_proj", "attention.wq"),
    ("self_attn.k_proj", "attention.wk"),
    ("self_attn.v_proj", "attention.wv"),
    ("self_attn.o_proj", "attention.wo"),
    ("mlp.gate_proj", "feed_forward.w1"),
    ("mlp.down_proj", "feed_forward.w2"),
    ("mlp.up_proj", "feed_forward.w3"),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("model.norm", "model.norm_out"),
)
GPT2 = (
    ("transformer.h.", "backbone.blocks."),
    ("ln_1.weight", "layernorm1.gamma"),
    ("ln_1.bias", "layernorm1.beta"),
    ("ln_2.weight", "layernorm2.gamma"),
    ("ln_2.bias", "layernorm2.beta"),
    ("attn.c_proj", "attention.projection"),
    ("attn.c_attn", "attention.c_attn"),
    ("mlp.c_fc", "output.mapping"),
    ("mlp.c_proj", "output.projection"),
    ("transformer.wte.weight", "backbone.embedding.word_embedding.embedding_table"),
    ("transformer.wpe.weight", "backbone.embedding.position_embedding.embedding_table"),
    ("transformer.ln_f.weight", "backbone.layernorm.gamma"),
    ("transformer.ln_f.bias", "backbone.layernorm.beta"),
)
BERT = (
    ("LayerNorm.weight", "layernorm.gamma"),
    ("LayerNorm.bias", "layernorm.beta"),
    ("bert.encoder.layer.", "bert.bert_encoder.encoder.layers."),
    ("self.query", "attention.query_layer"),
    ("self.key", "attention.key_layer"),
    ("self.value", "attention.value_layer"),
)
T5 = (("encoder.block.", "model.encoder.layers."), ("decoder.block.", "model.decoder.layers."))
FAMILIES = {
    "Llama": ("ForCausalLM", GROUPED, LLAMA),
    "Qwen2": ("ForCausalLM", GROUPED, LLAMA),
    "GPT2": ("LMHeadModel", {"vocab_size": 96, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}, GPT2),
    "Bert": ("ForMaskedLM", {**SIZES, "intermediate_size": 64, "max_position_embeddings": 64}, BERT),
    "Mixtral": ("ForCausalLM", {**GROUPED, "num_local_experts": 4}, LLAMA),
    "T5": (
        "ForConditionalGeneration",
        {"vocab_size": 96, "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 3, "num_heads": 4},
        T5,
    ),
}


def without_words(name):
    """Every word replaced by one that nobody knows; numbers and the parameter stay."""
    keep = ("weight", "bias")
    parts = (
        p if p.isdigit() or p in keep else "m" + hashlib.sha256(p.encode()).hexdigest()[:6] for p in name.split(".")
    )
    return ".".join(parts)


def assert_paired(a, b, truth):
    """At least 98 % of the tensors have their own partner and no other."""
    done = run(["ckpt", "compare", a, b, "--json"], check=False)
    assert done.returncode in (0, 1), done.stderr
    found = {}
    for weight in json.loads(done.stdout)["weights"]:
        found.setdefault(weight["a"].split("[")[0], set()).add(weight["b"].split("[")[0])
    right = [name for name, other in truth.items() if found.get(name) == {other}]
    assert len(right) >= 0.98 * len(truth), sorted(set(truth) - set(right))


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_find_their_partners(tmp_path, family):
    import transformers

    head, sizes, words = FAMILIES[family]
    torch.manual_seed(0)
    model = getattr(transformers, family + head)(getattr(transformers, family + "Config")(**sizes))
    state = {name: t.detach().clone() for name, t in model.state_dict().items()}
    # As after some steps: fresh norms are all ones, fresh biases all zeros.
    state = {n: t + 0.01 * torch.randn_like(t) if t.is_floating_point() else t for n, t in state.items()}
    torch.save(state, tmp_path / "a.pt")

    def other_words(name):
        for old, new in words:
            name = name.replace(old, new)
        return name

    def save(rename, change):
        torch.save({rename(n): change(t) if t.is_floating_point() else t for n, t in state.items()}, tmp_path / "b.pt")
        assert_paired(tmp_path / "a.pt", tmp_path / "b.pt", {n: rename(n) for n in state})

    save(other_words, lambda t: t * (1 + 1e-4 * torch.randn_like(t)))
    save(other_words, lambda t: 0.02 * torch.randn_like(t))  # values say nothing
    save(without_words, lambda t: t * (1 + 1e-4 * torch.randn_like(t)))  # names say nothing


@pytest.mark.parametrize("family", ["DeepseekV3", "GPT2", "T5"])
def test_names_alone_tell_the_layouts_of_other_programs(tmp_path, family):
    """All values of the other side are random while partners are looked for (publish_weight_names.py: all families)."""
    for layout in LAYOUTS[family]:
        weights, found, lost = judge(family, layout, tmp_path)
        assert found >= 0.98 * weights, (layout, lost)

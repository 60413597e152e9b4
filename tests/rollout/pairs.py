"""Dumps of a trainer and of an engine with the same weights: python pairs.py OUT CASE...; CASES has them all."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import torch

sys.path.insert(0, str(Path(__file__).parent))

from engine import Engine, EngineForCausalLM, Request
from msprobe.pytorch import PrecisionDebugger
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.gemma3.modeling_gemma3 import Gemma3TextScaledWordEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention, apply_rotary_pos_emb

SMALL = {
    "vocab_size": 160,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
MODELS = {
    "qwen2": ("qwen2", {"intermediate_size": 96, "tie_word_embeddings": False}),
    "tied": ("llama", {"intermediate_size": 96, "tie_word_embeddings": True}),
    "window": ("mistral", {"intermediate_size": 96, "sliding_window": 8, "head_dim": 16}),
    "moe": (
        "qwen2_moe",
        {
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
        },
    ),
    "heads": ("qwen3", {"intermediate_size": 96, "head_dim": 16}),
    "ahead": (
        "qwen3",
        {
            "intermediate_size": 96,
            "head_dim": 16,
            "sliding_window": 8,
            "use_sliding_window": True,
            "layer_types": ["sliding_attention"] * 3,
        },
    ),
    "mixtral": ("mixtral", {"intermediate_size": 48, "num_local_experts": 4, "num_experts_per_tok": 2}),
}
PROMPTS = {"a": 11, "b": 5, "c": 17, "d": 13}


@dataclass
class Case:
    model: str = "qwen2"
    faults: dict = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    layout: str = "padded"  # of the trainer: padded, left, packed
    prefix: bool = False
    level: str = "L0"
    scaled: float = 0  # the factor by which the trainer's embedding scales its values
    complete: bool = False  # the engine makes logits of requests only whose prompt is complete
    older: bool = False  # pages of cached prefixes are those of other weights
    expect: str = ""  # the op; "" where nothing is wrong
    kind: str = ""


CASES = {
    "clean_fp32": Case(),
    "clean_bf16": Case(dtype=torch.bfloat16),
    "clean_mix": Case(level="mix"),
    "clean_left_prefix": Case(layout="left", prefix=True),
    "clean_packed_bf16": Case(layout="packed", dtype=torch.bfloat16, prefix=True),
    "clean_tied": Case("tied", dtype=torch.bfloat16),
    "clean_window": Case("window"),
    "clean_window_bf16": Case("window", dtype=torch.bfloat16, prefix=True),
    "clean_scaled": Case("window", scaled=8),
    "clean_scaled_bf16": Case("window", scaled=8, dtype=torch.bfloat16),
    "scaled_window": Case(
        "window", faults={"window": 7}, scaled=8, expect="layers.0 attention", kind="attention_window"
    ),
    "scaled_twice": Case("window", faults={"embed_scale": 8}, scaled=8, expect="embedding", kind="factor"),
    "clean_mixtral": Case("mixtral"),
    "clean_mixtral_bf16": Case("mixtral", dtype=torch.bfloat16),
    "clean_heads_bf16": Case("heads", dtype=torch.bfloat16, prefix=True),
    "clean_moe_bf16": Case("moe", dtype=torch.bfloat16, layout="packed"),
    "head_eps": Case("heads", faults={"head_eps": 0.5, "layer": 1}, expect="layers.1 q norm", kind="norm_eps"),
    "heads": Case(
        "heads", faults={"heads": 1}, dtype=torch.bfloat16, expect="layers.0 attention", kind="attention_heads"
    ),
    "clean_ahead": Case("ahead", complete=True, prefix=True),
    "clean_complete_bf16": Case(dtype=torch.bfloat16, complete=True),
    "window_ahead": Case("ahead", faults={"window": 9}, expect="layers.0 attention", kind="attention_window"),
    "fp16_logits_complete": Case(faults={"fp16_logits": 1}, complete=True, expect="head", kind="precision"),
    "older_pages": Case(prefix=True, older=True, expect="layers.0 attention", kind="prefix_cache"),
    "page": Case(faults={"page": 1, "layer": 1}, prefix=True, expect="layers.1 attention", kind="op"),
    "positions": Case(
        "tied", faults={"positions": 1, "layer": 1}, expect="layers.1 rotary embedding", kind="positions"
    ),
    "shares": Case("mixtral", faults={"top_k_norm": 1}, expect="layers.0 MLP", kind="expert_shares"),
    "top_k_norm": Case("moe", faults={"top_k_norm": 1, "layer": 1}, expect="layers.1 MLP", kind="op"),
    "shared": Case("moe", faults={"shared": 1, "layer": 2}, dtype=torch.bfloat16, expect="layers.2 MLP", kind="op"),
    "rope_base": Case(faults={"rope_base": 1e6}, expect="layers.0 rotary embedding", kind="rotary_base"),
    "rope_base_bf16": Case(
        faults={"rope_base": 1e6}, dtype=torch.bfloat16, expect="layers.0 rotary embedding", kind="rotary_base"
    ),
    "scale": Case(faults={"attention_scale": 0.9}, expect="layers.0 attention", kind="attention_scale"),
    "scale_bf16": Case(
        faults={"attention_scale": 0.9, "layer": 1},
        dtype=torch.bfloat16,
        expect="layers.1 attention",
        kind="attention_scale",
    ),
    "eps": Case(faults={"eps": 1e-2}, expect="layers.0 input norm", kind="norm_eps"),
    "eps_small": Case(faults={"eps": 1e-5, "layer": 1}, expect="layers.1 input norm", kind="norm_eps"),
    "eps_bf16": Case(
        faults={"eps": 3e-2, "layer": 1}, dtype=torch.bfloat16, expect="layers.1 input norm", kind="norm_eps"
    ),
    "norm_plus_one": Case(
        "tied", faults={"norm_plus_one": 1, "layer": 1}, expect="layers.1 input norm", kind="norm_plus_one"
    ),
    "q_rows": Case(faults={"q_rows": 16, "layer": 2}, expect="layers.2 q projection", kind="order"),
    "q_rows_bf16": Case(
        faults={"q_rows": 16, "layer": 2}, dtype=torch.bfloat16, expect="layers.2 q projection", kind="order"
    ),
    "window": Case("window", faults={"window": 4, "layer": 1}, expect="layers.1 attention", kind="attention_window"),
    "window_off": Case(
        "window", faults={"window": None}, dtype=torch.bfloat16, expect="layers.0 attention", kind="attention_window"
    ),
    "fp16_logits": Case(faults={"fp16_logits": 1}, expect="head", kind="precision"),
    "bias": Case(faults={"bias": 1, "layer": 1}, layout="left", expect="layers.1 q projection", kind="bias"),
    "gate_up": Case(
        "tied", faults={"gate_up": 1, "layer": 1}, prefix=True, expect="layers.1 activation", kind="gate_up"
    ),
    "activation": Case(faults={"activation": 1, "layer": 1}, expect="layers.1 activation", kind="activation"),
    "residual": Case(
        faults={"residual": 1, "layer": 1},
        layout="packed",
        expect="layers.1 residual behind attention",
        kind="residual",
    ),
}


class HeadsAhead(Qwen3Attention):
    """Norms of heads are given [batch, heads, tokens, size], as Gemma 3 does."""

    def forward(self, hidden_states: Any, position_embeddings: Any, attention_mask: Any, **_: Any) -> tuple:
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        parts = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (part(hidden_states).view(shape).transpose(1, 2) for part in parts)
        q, k = apply_rotary_pos_emb(self.q_norm(q), self.k_norm(k), *position_embeddings)
        out, _ = sdpa_attention_forward(self, q, k, v, attention_mask, dropout=0.0, scaling=self.scaling)
        return self.o_proj(out.reshape(*shape[:-2], -1)), None


def heads_ahead(model: Any) -> None:
    """Such a model has angles of several kinds, too: those of the first kind are of no layer here."""
    for layer in model.model.layers:
        layer.self_attn.__class__ = HeadsAhead

    def other_angles(_: Any, args: tuple, out: torch.Tensor) -> None:
        model.model.rotary_emb(out, 3 * torch.arange(out.shape[1])[None])

    model.model.embed_tokens.register_forward_hook(other_angles)


def build(name: str, dtype: torch.dtype, scaled: float = 0) -> Any:
    """The trainer's model, with weights that let attention look at something."""
    torch.manual_seed(7)
    kind, more = MODELS[name]
    config = AutoConfig.for_model(kind, **{**SMALL, **more})
    model = AutoModelForCausalLM.from_config(config).eval()
    if scaled:
        model.model.embed_tokens = Gemma3TextScaledWordEmbedding(config.vocab_size, config.hidden_size, None, scaled)
    if name == "ahead":
        heads_ahead(model)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if weight.ndim >= 2:
                weight.normal_(0, 0.15 if "_proj" in key or "gate" in key else 0.5)
            elif "norm" in key:
                weight.uniform_(0.6, 1.4)
            else:
                weight.normal_(0, 0.3)
    return model.to(dtype)


def requests(shared: bool) -> list:
    torch.manual_seed(3)
    out, prefix = [], torch.randint(3, 160, (8,)).tolist()
    for name, length in PROMPTS.items():
        tokens = torch.randint(3, 160, (length,)).tolist()
        if shared and length > 8:
            tokens[:8] = prefix
        out.append(Request(name, tokens))
    return out


@torch.no_grad()
def train(model: Any, done: list, layout: str, debugger: Any) -> torch.Tensor:
    """One forward over all sequences."""
    rows = [torch.tensor(r.tokens) for r in done]
    debugger.start(model=model)
    if layout == "packed":
        positions = torch.cat([torch.arange(len(r)) for r in rows])[None]
        out = model(input_ids=torch.cat(rows)[None], position_ids=positions, use_cache=False).logits
    else:
        longest = max(len(r) for r in rows)
        ids, mask = torch.zeros(2, len(rows), longest, dtype=torch.long)
        for i, row in enumerate(rows):
            where = slice(longest - len(row), None) if layout == "left" else slice(len(row))
            ids[i, where], mask[i, where] = row, 1
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        out = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits
    debugger.stop()
    debugger.step()
    return out


def make(out: Path, name: str) -> None:
    case = CASES[name]
    debugger: Optional[Any] = PrecisionDebugger(task="tensor", level=case.level, dump_path=str(out))
    debugger.service.config.level = case.level

    def into(side: str) -> Any:
        debugger.service.config.dump_path = str(out / name / side)
        debugger.service.reset_status()
        return debugger

    model = build(case.model, case.dtype, case.scaled)
    engine = Engine(EngineForCausalLM(model, case.faults), prefix_cache=case.prefix)
    engine.complete_only, engine.older_pages = case.complete, case.older
    done = engine.run(requests(case.prefix), into("engine"))
    train(model, sorted(done, key=lambda r: r.name), case.layout, into("train"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case_name in sys.argv[2:] or CASES:
        make(Path(sys.argv[1]), case_name)

"""One training as every stack of tests/checks/matrix.txt writes it, and what each change of it is called."""

import json
import re
from pathlib import Path

from launch import REPO

BASE = {
    "layers": 16, "hidden": 1024, "ffn": 2816, "heads": 16, "kv_heads": 4, "vocab": 32000, "seq": 1024, "norm": "RMSNorm",
    "norm_eps": 1e-6, "rope": 20000, "tied": False, "init_std": 0.02, "dropout": 0.0, "micro": 4, "accumulation": 2, "dp": 4,
    "steps": 600, "lr": 4e-4, "min_lr": 4e-5, "schedule": "cosine", "warmup": 30, "beta1": 0.9, "beta2": 0.98, "eps": 1e-8,
    "decay": 0.05, "clip": 1.0, "dtype": "bf16", "seed": 11,
}  # fmt: skip
# What changes, to what, and the rules that may fail by it.
CHANGES = {
    "layers": (12, ["structure.num_layers"]),
    "hidden": (2048, ["structure.hidden_size", "structure.intermediate_size"]),
    "ffn": (3072, ["structure.intermediate_size"]),
    "heads": (32, ["structure.num_heads", "structure.attention"]),
    "kv_heads": (8, ["structure.attention"]),
    "vocab": (32128, ["structure.vocab_size"]),
    "seq": (2048, ["structure.seq_length"]),
    "norm": ("LayerNorm", ["structure.normalization"]),
    "norm_eps": (1e-5, ["structure.norm_eps"]),
    "rope": (1000000, ["structure.rope_base"]),
    "tied": (True, ["structure.tied_embeddings"]),
    "init_std": (0.01, ["structure.init_std"]),
    "dropout": (0.1, ["structure.dropout"]),
    "accumulation": (4, ["optimizer.global_batch_size"]),
    "steps": (900, ["optimizer.lr_schedule_members"]),
    "lr": (6e-4, ["optimizer.lr"]),
    "min_lr": (8e-5, ["optimizer.min_lr"]),
    "schedule": ("linear", ["optimizer.lr_schedule"]),
    "warmup": (60, ["optimizer.warmup_ratio"]),
    "beta1": (0.85, ["optimizer.beta1"]),
    "beta2": (0.95, ["optimizer.beta2"]),
    "eps": (1e-6, ["optimizer.eps"]),
    "decay": (0.1, ["optimizer.weight_decay"]),
    "clip": (0.5, ["optimizer.clip_grad"]),
    "dtype": ("fp16", ["precision.compute_dtype"]),
    "seed": (13, ["prepare.seed"]),
}
WARN = {"structure.init_std", "prepare.seed"}


def hf_config(t):
    return json.dumps(
        {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": t["layers"], "hidden_size": t["hidden"],
            "intermediate_size": t["ffn"], "num_attention_heads": t["heads"], "num_key_value_heads": t["kv_heads"],
            "vocab_size": t["vocab"], "rms_norm_eps": t["norm_eps"], "rope_theta": t["rope"], "hidden_act": "silu",
            "attention_dropout": t["dropout"], "tie_word_embeddings": t["tied"], "initializer_range": t["init_std"],
        }
    )  # fmt: skip


def values(training):
    t = dict(training)
    batch = t["micro"] * t["accumulation"] * t["dp"]
    rms = t["norm"] == "RMSNorm"
    long = {"bf16": "bfloat16", "fp16": "float16"}[t["dtype"]]
    t.update(
        batch=batch, samples=batch * t["steps"], tokens=batch * t["steps"] * t["seq"], warmup_samples=batch * t["warmup"],
        warmup_ratio=t["warmup"] / t["steps"], min_lr_ratio=t["min_lr"] / t["lr"], dtype_flag=t["dtype"], dtype_long=long,
        untie_flag="" if t["tied"] else "--untie-embeddings-and-output-weights", untied_json=str(not t["tied"]).lower(),
        nemo_norm="rmsnorm" if rms else "layernorm", neox_norm="rmsnorm" if rms else "layernorm",
        neox_eps_key="rms_norm_epsilon" if rms else "layernorm_epsilon", neox_ffn=t["ffn"] * 3,
        mpt_norm="low_precision_rmsnorm" if rms else "low_precision_layernorm",
        mf_schedule={"cosine": "CosineWithWarmUpLR", "linear": "LinearWithWarmUpLR"}[t["schedule"]],
        hf_schedule={"cosine": "cosine_with_min_lr", "linear": "linear"}[t["schedule"]],
        nemo_schedule={"cosine": "CosineAnnealing", "linear": "WarmupAnnealing"}[t["schedule"]],
        hf_config=hf_config(t),
    )  # fmt: skip
    return t


def stacks():
    """Name of a stack: its files with their texts, and the values that they hold."""
    out, name, file = {}, None, None
    for line in (REPO / "tests" / "checks" / "matrix.txt").read_text().splitlines():
        if line.startswith("== "):
            name = line[3:]
            out[name] = {}
        elif line.startswith("-- "):
            file = line[3:]
            out[name][file] = ""
        elif name:
            out[name][file] += line + "\n"
    return out


def used(stack):
    names = {name for text in stack.values() for name in re.findall(r"\{(\w+)\}", text)}
    told = set(CHANGES) & names
    for name, changes in {
        "batch": ["accumulation"], "samples": ["steps", "accumulation"], "tokens": ["steps"], "warmup_samples": ["warmup"],
        "warmup_ratio": ["warmup"], "min_lr_ratio": ["min_lr"], "dtype_flag": ["dtype"], "dtype_long": ["dtype"],
        "untie_flag": ["tied"], "untied_json": ["tied"], "nemo_norm": ["norm"], "neox_norm": ["norm"], "mpt_norm": ["norm"],
        "mf_schedule": ["schedule"], "hf_schedule": ["schedule"], "nemo_schedule": ["schedule"], "neox_ffn": ["ffn"],
        "hf_config": ["layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "norm_eps", "rope", "tied", "init_std", "dropout"],
    }.items():  # fmt: skip
        if name in names:
            told |= set(changes)
    return told


def write(folder, stack, training):
    """The files of a stack in a folder; the one that starts it first."""
    t = values(training)
    paths = []
    for file, text in stack.items():
        path = Path(folder) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"\{(\w+)\}", lambda m: str(t[m[1]]) if m[1] in t else m[0], text))
        paths.append(str(path))
    given = [paths[-1]] + [path for path in paths[:-1] if path.endswith("config.json")]
    return given

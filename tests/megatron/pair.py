"""One model of two programs: Megatron's GPT and the Qwen2 of transformers with the same weights, trained for one step and recorded.

`pair.py OUT JOB...`, a job is `side[,key=value...]`: side `megatron` or `hugging`; name (of its folder below OUT), dtype (fp32, bf16),
level, task, wrap (ddp, plain: of hugging), ops (eager, fused: of megatron, see fused_ops.py), fault (one of FAULTS). All jobs are
forked after the imports.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import fused_ops
import stand_in

stand_in.pretend_cuda()

import gpt  # noqa: E402 - it imports megatron
import torch  # noqa: E402
import train  # noqa: E402
import transformers  # noqa: E402

LAYOUT = gpt.Layout(layers=3, hidden=64, heads=4, groups=2, ffn=96, vocab=128, micro_batches=1, eps=1e-6, qkv_bias=True)


def megatron_names(layout):
    """{name of the parameter in Megatron: those of transformers that it is made of}."""
    names = {"embedding.word_embeddings.weight": ["model.embed_tokens.weight"]}
    for i in range(layout.layers):
        ours, theirs = f"decoder.layers.{i}.", f"model.layers.{i}."
        names[f"{ours}input_layernorm.weight"] = [f"{theirs}input_layernorm.weight"]
        names[f"{ours}pre_mlp_layernorm.weight"] = [f"{theirs}post_attention_layernorm.weight"]
        for kind in ("weight", "bias"):
            names[f"{ours}self_attention.linear_qkv.{kind}"] = [f"{theirs}self_attn.{n}_proj.{kind}" for n in "qkv"]
        names[f"{ours}self_attention.linear_proj.weight"] = [f"{theirs}self_attn.o_proj.weight"]
        names[f"{ours}mlp.linear_fc1.weight"] = [f"{theirs}mlp.{n}_proj.weight" for n in ("gate", "up")]
        names[f"{ours}mlp.linear_fc2.weight"] = [f"{theirs}mlp.down_proj.weight"]
    names["decoder.final_layernorm.weight"] = ["model.norm.weight"]
    names["output_layer.weight"] = ["lm_head.weight"]
    return names


def hugging_weights(layout):
    """The global model of gpt.py: q, k and v are cut out of each group, gate and up are the halves of linear_fc1."""
    each = layout.hidden // layout.heads
    queries = layout.heads // layout.groups * each
    rows = {
        "linear_qkv": layout.groups * (queries + 2 * each),
        "linear_fc1": 2 * layout.ffn,
        "output_layer": layout.vocab,
    }
    rows |= {"word_embeddings": layout.vocab}
    columns = {"linear_fc2": layout.ffn}
    out = {}
    for ours, theirs in megatron_names(layout).items():
        layer, kind = ours.split(".")[-2:]
        flat = kind == "bias" or "norm" in layer
        shape = [rows.get(layer, layout.hidden)] + ([] if flat else [columns.get(layer, layout.hidden)])
        whole = gpt.whole(ours, shape)
        if layer == "linear_qkv":
            groups = whole.view(layout.groups, queries + 2 * each, *shape[1:]).split([queries, each, each], 1)
            parts = [part.reshape(-1, *shape[1:]) for part in groups]
        else:
            parts = whole.chunk(len(theirs), 0)
        out |= dict(zip(theirs, parts))
    return out


def scaled(factor):
    """A module that gives something else."""

    def hook(module, arguments, output):
        return (output[0] * factor, *output[1:]) if isinstance(output, tuple) else output * factor

    return lambda module: module.register_forward_hook(hook)


def gradient_scaled(factor):
    def hook(module, arguments, output):
        (output[0] if isinstance(output, tuple) else output).register_hook(lambda g: g * factor)

    return lambda module: module.register_forward_hook(hook)


def weight_scaled(factor):
    def change(module):
        with torch.no_grad():
            module.weight[: len(module.weight) // 2] *= factor

    return change


def other_activation(module):
    gelu = torch.nn.functional.gelu
    if hasattr(module, "config") and hasattr(module.config, "activation_func"):
        module.config = type(module.config)(**{**vars(module.config), "activation_func": gelu})
        module.activation_func = gelu
    else:
        module.act_fn = gelu_module()


def gelu_module():
    return torch.nn.GELU()


def other_scale(module):
    if hasattr(module, "core_attention"):
        module.core_attention.softmax_scale *= 3
    else:
        module.scaling *= 3


def other_eps(module):
    name = "eps" if hasattr(module, "eps") else "variance_epsilon"
    setattr(module, name, 1.0)


def no_rotation(module):
    module.inv_freq = torch.zeros_like(module.inv_freq)


# fault: (what it changes, the module in Megatron, in transformers, the module that is to be named if that is another one)
_ATTENTION = ("decoder.layers.0.self_attention", "model.layers.0.self_attn")
FAULTS = {
    "embedding": (weight_scaled(1.5), "embedding.word_embeddings", "model.embed_tokens", None),
    "norm weight": (weight_scaled(1.5), "decoder.layers.1.input_layernorm", "model.layers.1.input_layernorm", None),
    "eps": (other_eps, "decoder.layers.1.pre_mlp_layernorm", "model.layers.1.post_attention_layernorm", None),
    "scores": (other_scale, "decoder.layers.1.self_attention", "model.layers.1.self_attn", None),
    "rotation": (no_rotation, "rotary_pos_emb", "model.rotary_emb", _ATTENTION),
    "activation": (other_activation, "decoder.layers.2.mlp", "model.layers.2.mlp", None),
    "output": (scaled(1.5), "decoder.layers.1.mlp.linear_fc2", "model.layers.1.mlp.down_proj", None),
    "gradient": (gradient_scaled(1.5), "decoder.layers.1.mlp", "model.layers.1.mlp", None),
    "projection": (
        weight_scaled(1.5),
        "decoder.layers.2.self_attention.linear_proj",
        "model.layers.2.self_attn.o_proj",
        None,
    ),
    "last norm": (scaled(1.5), "decoder.final_layernorm", "model.norm", None),
}


def plant(model, fault, side):
    if fault:
        change, *paths, _ = FAULTS[fault]
        change(model.get_submodule(paths[side]))


def train_megatron(job, layout, debugger):

    def change(model, _):
        plant(model, job.fault, 0)
        if job.ops == "fused":
            fused_ops.use(model)

    run = gpt.build(layout, change)
    debugger.start(model=run.chunks)  # a list, as Megatron's training has it
    loss = train.train_step(run, 0)["loss"]
    return loss


def hugging_model(layout=LAYOUT):
    config = transformers.Qwen2Config(
        vocab_size=layout.vocab,
        hidden_size=layout.hidden,
        intermediate_size=layout.ffn,
        num_hidden_layers=layout.layers,
        num_attention_heads=layout.heads,
        num_key_value_heads=layout.groups,
        rms_norm_eps=layout.eps,
        rope_theta=10000.0,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        attention_dropout=0.0,
    )
    model = transformers.Qwen2ForCausalLM(config)
    model.load_state_dict(hugging_weights(layout))
    return model.train()


def train_hugging(job, layout, debugger):
    model = hugging_model()
    plant(model, job.fault, 1)
    if layout.bf16:
        model = model.bfloat16()
    wrapped = torch.nn.parallel.DistributedDataParallel(model) if job.wrap == "ddp" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999))
    debugger.start(model=wrapped)
    batch = next(train.batches(layout, 0))
    logits = wrapped(input_ids=batch["tokens"]).logits.float()
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), reduction="none")
    mask = batch["loss_mask"].flatten()
    loss = (losses * mask).sum() / mask.sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def run_job(job, out):
    layout = LAYOUT._replace(bf16=job.dtype == "bf16")
    out.mkdir(parents=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if job.ops == "fused":
        fused_ops.install()
    debugger = train.debugger_of(job, out, 0)
    gpt.start_process(layout, 0, str(out / "store"))
    loss = {"megatron": train_megatron, "hugging": train_hugging}[job.side](job, layout, debugger)
    debugger.stop()
    debugger.step()
    (out / "loss.json").write_text(json.dumps(loss))


def parsed(text):
    side, *fields = text.split(",")
    given = {
        "side": side,
        "name": side,
        "dtype": "fp32",
        "level": "L0",
        "task": "statistics",
        "wrap": "ddp",
        "ops": "eager",
        "fault": "",
    }
    return SimpleNamespace(**given | dict(field.split("=") for field in fields))


def main(run_job=run_job):
    import msprobe.pytorch  # noqa: F401 - once for all jobs

    failed = []
    for job in map(parsed, sys.argv[2:]):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run_job(job, Path(sys.argv[1]) / job.name)
                status = 0
            except BaseException:  # noqa: BLE001 - whatever it was, it is shown and this process ends
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        if os.waitpid(pid, 0)[1]:
            failed.append(job.name)
    sys.exit(f"failed: {failed}" if failed else 0)


if __name__ == "__main__":
    main()

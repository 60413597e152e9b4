"""A small model as a trainer and an engine have it, and its rollouts as the programs write them down."""

import json

import torch
from graph_cases import run

HIDDEN, HEADS, GROUPS, HEAD, FFN, LAYERS, VOCAB = 32, 4, 2, 8, 64, 3, 96
CONFIG = {
    "model_type": "qwen2",
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "head_dim": HEAD,
    "intermediate_size": FFN,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB,
}
PAD = 0


def weights(seed=0, tied=False):
    """Under the names of transformers."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator) / shape[-1] ** 0.5

    out = {"model.embed_tokens.weight": drawn(VOCAB, HIDDEN) * 3}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for name, rows in (("q", HEADS * HEAD), ("k", GROUPS * HEAD), ("v", GROUPS * HEAD)):
            out[f"{prefix}self_attn.{name}_proj.weight"] = drawn(rows, HIDDEN)
        out[prefix + "self_attn.o_proj.weight"] = drawn(HIDDEN, HEADS * HEAD)
        out[prefix + "mlp.gate_proj.weight"] = drawn(FFN, HIDDEN)
        out[prefix + "mlp.up_proj.weight"] = drawn(FFN, HIDDEN)
        out[prefix + "mlp.down_proj.weight"] = drawn(HIDDEN, FFN)
        out[prefix + "input_layernorm.weight"] = 1 + drawn(HIDDEN) / 4
        out[prefix + "post_attention_layernorm.weight"] = 1 + drawn(HIDDEN) / 4
    out["model.norm.weight"] = 1 + drawn(HIDDEN) / 4
    if not tied:
        out["lm_head.weight"] = drawn(VOCAB, HIDDEN) * 2
    return out


def updated(state, seed, size=1e-3):
    """Every weight after a step of an optimizer."""
    generator = torch.Generator().manual_seed(seed)
    return {name: w + size * torch.randn(w.shape, generator=generator) for name, w in state.items()}


def fused(state, dtype=torch.float32):
    """Under the names of vLLM, where q, k, v and gate, up are one."""
    out = {}
    for name, weight in state.items():
        if ".q_proj." in name:
            parts = [state[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
            out[name.replace("q_proj", "qkv_proj")] = torch.cat(parts)
        elif ".gate_proj." in name:
            out[name.replace("gate_proj", "gate_up_proj")] = torch.cat(
                [weight, state[name.replace("gate_proj", "up_proj")]]
            )
        elif not any(part in name for part in (".k_proj.", ".v_proj.", ".up_proj.")):
            out[name] = weight
    return {name: weight.to(dtype).contiguous().clone() for name, weight in out.items()}


def save(directory, state, **config):
    """A checkpoint as transformers' save_pretrained() leaves it."""
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    save_file({name: w.contiguous().clone() for name, w in state.items()}, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps({**CONFIG, **config}))
    return directory


def logits_of(state, ids, dtype=torch.float32):
    """Of every token of a sequence."""
    state = {name: w.to(dtype) for name, w in state.items()}

    def norm(x, name):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(dtype) * state[name]

    x = state["model.embed_tokens.weight"][torch.tensor(ids)]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        h = norm(x, prefix + "input_layernorm.weight")
        q, k, v = (
            (h @ state[f"{prefix}self_attn.{p}_proj.weight"].T).view(len(ids), -1, HEAD).transpose(0, 1) for p in "qkv"
        )
        k, v = k.repeat_interleave(HEADS // GROUPS, 0), v.repeat_interleave(HEADS // GROUPS, 0)
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + a.transpose(0, 1).reshape(len(ids), -1) @ state[prefix + "self_attn.o_proj.weight"].T
        h = norm(x, prefix + "post_attention_layernorm.weight")
        gate = torch.nn.functional.silu(h @ state[prefix + "mlp.gate_proj.weight"].T)
        x = x + (gate * (h @ state[prefix + "mlp.up_proj.weight"].T)) @ state[prefix + "mlp.down_proj.weight"].T
    head = state.get("lm_head.weight", state["model.embed_tokens.weight"])
    return (norm(x, "model.norm.weight") @ head.T).float()


class Rollout:
    """Requests drawn from the model, with what each side says of them."""

    def __init__(self, state=None, seed=1, requests=4, engine=None, dtype=torch.float32):
        self.state = weights() if state is None else state
        generator = torch.Generator().manual_seed(seed)
        self.prompts = [torch.randint(2, VOCAB, (4 + i,), generator=generator).tolist() for i in range(requests)]
        self.responses, self.train, self.rollout, self.train_logits, self.rollout_logits = [], [], [], [], []
        for i, prompt in enumerate(self.prompts):
            ids = list(prompt)
            for _ in range(12 + 3 * i):
                probabilities = logits_of(self.state, ids)[-1].softmax(-1)
                probabilities[:2] = 0
                ids.append(int(torch.multinomial(probabilities, 1, generator=generator)))
            response = ids[len(prompt) :]
            self.responses.append(response)
            mine = logits_of(self.state, ids)[len(prompt) - 1 : -1]
            theirs = logits_of(self.state if engine is None else engine, ids, dtype)[len(prompt) - 1 : -1]
            self.train_logits.append(mine)
            self.rollout_logits.append(theirs)
            self.train.append(picked(mine.log_softmax(-1), response))
            self.rollout.append(picked(theirs.log_softmax(-1), response))

    def kl(self):
        """k3, as the programs compute it."""
        r = torch.tensor(
            [a - b for x, y in zip(self.train, self.rollout, strict=True) for a, b in zip(x, y, strict=True)]
        )
        return float((r.exp() - r - 1).double().mean())

    def tokens(self):
        return sum(map(len, self.responses))


def picked(table, ids):
    return table.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()


def padded(rows, fill, left=False, dtype=None):
    width = max(map(len, rows))
    out = [[fill] * (width - len(r)) + list(r) if left else list(r) + [fill] * (width - len(r)) for r in rows]
    return torch.tensor(out, dtype=dtype)


def verl_batch(r, path, sides=("train", "rollout"), **changes):
    """dict(batch.batch) of a DataProto."""
    prompts, responses = padded(r.prompts, PAD, left=True), padded(r.responses, PAD)
    attention = torch.cat(
        [padded([[1] * len(p) for p in r.prompts], 0, left=True), padded([[1] * len(x) for x in r.responses], 0)], 1
    )
    batch = {
        "prompts": prompts,
        "responses": responses,
        "input_ids": torch.cat([prompts, responses], 1),
        "attention_mask": attention,
        "position_ids": (attention.cumsum(1) - 1).clamp(min=0),
        "response_mask": attention[:, prompts.shape[1] :],
    }
    if "train" in sides:
        batch["old_log_probs"] = padded(r.train, 0.0)
    if "rollout" in sides:
        batch["rollout_log_probs"] = padded(r.rollout, 0.0)
    batch.update(changes)
    torch.save(batch, path)
    return path


def trl_batch(r, path, sides=("train", "rollout")):
    """What GRPOTrainer's _generate_and_score_completions() returns."""
    batch = {
        "prompt_ids": padded(r.prompts, PAD, left=True),
        "prompt_mask": padded([[1] * len(p) for p in r.prompts], 0, left=True),
        "completion_ids": padded(r.responses, PAD),
        "completion_mask": padded([[1] * len(x) for x in r.responses], 0),
        "advantages": torch.zeros(len(r.prompts)),
        "num_items_in_batch": torch.tensor(r.tokens()),
    }
    if "train" in sides:
        batch["old_per_token_logps"] = padded(r.train, 0.0)
    if "rollout" in sides:
        batch["sampling_per_token_logps"] = padded(r.rollout, 0.0)
    torch.save(batch, path)
    return path


def slime_rollout(r, path):
    """--save-debug-rollout-data: samples of the engine."""
    samples = [
        {
            "group_index": 0,
            "index": i,
            "prompt": "",
            "tokens": p + x,
            "response": f"text {i}",
            "response_length": len(x),
            "loss_mask": [1] * len(x),
            "weight_versions": ["3"],
            "rollout_log_probs": lp,
            "status": "completed",
            "metadata": {},
        }
        for i, (p, x, lp) in enumerate(zip(r.prompts, r.responses, r.rollout, strict=True))
    ]
    torch.save({"rollout_id": 0, "samples": samples}, path)
    return path


def slime_train(r, path):
    """--save-debug-train-data: the batch of a rank of the trainer."""
    data = {
        "tokens": [torch.tensor(p + x) for p, x in zip(r.prompts, r.responses, strict=True)],
        "response_lengths": [len(x) for x in r.responses],
        "loss_masks": [torch.ones(len(x), dtype=torch.int) for x in r.responses],
        "sample_indices": list(range(len(r.prompts))),
        "log_probs": [torch.tensor(lp) for lp in r.train],
        "rollout_log_probs": [torch.tensor(lp) for lp in r.rollout],
    }
    torch.save({"rollout_id": 0, "rank": 0, "rollout_data": data}, path)
    return path


def skyrl_generator(r, path):
    """GeneratorOutput."""
    out = {
        "prompt_token_ids": r.prompts,
        "response_ids": r.responses,
        "rewards": [0.0] * len(r.prompts),
        "loss_masks": [[1] * len(x) for x in r.responses],
        "stop_reasons": ["stop"] * len(r.prompts),
        "rollout_logprobs": r.rollout,
    }
    path.write_text(json.dumps(out))
    return path


def skyrl_batch(r, path):
    """The tensors of a TrainingInputBatch."""
    sequences = torch.cat([padded(r.prompts, PAD, left=True), padded(r.responses, PAD)], 1)
    mask = padded([[1] * len(x) for x in r.responses], 0)
    attention = torch.cat([padded([[1] * len(p) for p in r.prompts], 0, left=True), mask], 1)
    batch = {
        "sequences": sequences,
        "attention_mask": attention,
        "response_mask": mask,
        "loss_mask": mask,
        "action_log_probs": padded(r.train, 0.0),
        "rollout_logprobs": padded(r.rollout, 0.0),
    }
    torch.save(batch, path)
    return path


def nemo_lines(r, path):
    """train_data_step1.jsonl: a line a request, everything as long as the padded row."""
    width = max(len(p) + len(x) for p, x in zip(r.prompts, r.responses, strict=True))
    with open(path, "w") as out:
        for i, (p, x) in enumerate(zip(r.prompts, r.responses, strict=True)):
            fill = width - len(p) - len(x)
            line = {
                "idx": i,
                "token_ids": p + x + [PAD] * fill,
                "token_loss_mask": [0] * len(p) + [1] * len(x) + [0] * fill,
                "sample_loss_mask": 1.0,
                "input_lengths": len(p) + len(x),
                "generation_logprobs": [0.0] * len(p) + r.rollout[i] + [0.0] * fill,
                "prev_logprobs": [0.0] * len(p) + r.train[i] + [0.0] * fill,
            }
            out.write(json.dumps(line) + "\n")
    return path


def plain_lines(r, path, side, **more):
    """Records that people write themselves: a line a request."""
    with open(path, "w") as out:
        for i, (p, x) in enumerate(zip(r.prompts, r.responses, strict=True)):
            line = {"request_id": f"r{i}", "prompt_token_ids": p, "token_ids": x, "logprobs": getattr(r, side)[i]}
            for key, values in more.items():
                line[key] = values[i] if isinstance(values, list) else values
            out.write(json.dumps(line) + "\n")
    return path


def rollout(train, engine, *options, code=None):
    """What `msprobe rollout` says, with its stages by name."""
    done = run(["rollout", train, engine, "--json", *options], check=False)
    assert done.returncode in ((0, 1, 5) if code is None else (code,)), (
        done.returncode,
        done.stderr,
        done.stdout[:3000],
    )
    result = json.loads(done.stdout)
    result["verdicts"] = {stage["stage"]: stage["verdict"] for stage in result["stages"]}
    result["of"] = {stage["stage"]: stage for stage in result["stages"]}
    return result

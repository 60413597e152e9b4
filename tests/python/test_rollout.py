"""msprobe rollout: why an engine's log-probabilities are not the trainer's, from records, weights, or both."""

import copy
import json
import random

import pytest
import torch
from graph_cases import run
from launch import run_python
from rollout_cases import (
    LAYERS,
    PAD,
    Rollout,
    fused,
    nemo_lines,
    picked,
    plain_lines,
    rollout,
    save,
    skyrl_batch,
    skyrl_generator,
    slime_rollout,
    slime_train,
    trl_batch,
    updated,
    verl_batch,
    weights,
)

UNSEEN = {"token": "not_seen", "weight": "not_seen", "sampling": "not_seen", "routing": "not_seen"}


def accuses_nothing(result):
    return "cause" not in result["verdicts"].values()


@pytest.fixture(scope="module")
def healthy():
    """An engine in bfloat16."""
    return Rollout(dtype=torch.bfloat16)


@pytest.fixture(scope="module")
def drawn():
    """An engine that computes the same bits; tests write what they please into copies."""
    return Rollout()


# What programs write


@pytest.mark.parametrize(
    "write", [verl_batch, trl_batch, slime_train, skyrl_batch, nemo_lines], ids=lambda w: w.__name__
)
def test_a_record_of_both_sides(tmp_path, healthy, write):
    path = write(healthy, tmp_path / ("a.jsonl" if write is nemo_lines else "a.pt"))
    result = rollout(path, path)
    assert result["tokens"] == healthy.tokens()
    assert result["kl"] == pytest.approx(healthy.kl(), rel=1e-3)
    assert accuses_nothing(result), result["headline"]
    # Nothing here says whether the gap is rounding: neither the weights nor the ops of an engine are in a record.
    assert result["verdicts"] | UNSEEN == result["verdicts"]
    assert result["stage"] is None and result["judgement"]["kind"] == "not_seen"


@pytest.mark.parametrize(
    ("write_train", "train_name", "write_engine", "engine_name"),
    [
        (slime_train, "0_0.pt", slime_rollout, "0.pt"),
        (skyrl_batch, "batch.pt", skyrl_generator, "out.json"),
        (
            lambda r, path: verl_batch(r, path, sides=("train",)),
            "a.pt",
            lambda r, path: plain_lines(r, path, "rollout"),
            "b.jsonl",
        ),
        (
            lambda r, path: trl_batch(r, path, sides=("train",)),
            "a.pt",
            lambda r, path: plain_lines(r, path, "rollout"),
            "b.jsonl",
        ),
    ],
    ids=["slime", "SkyRL", "verl", "TRL"],
)
def test_a_record_of_each_side(tmp_path, healthy, write_train, train_name, write_engine, engine_name):
    for side in ("train", "engine"):
        (tmp_path / side).mkdir()
    write_train(healthy, tmp_path / "train" / train_name)
    write_engine(healthy, tmp_path / "engine" / engine_name)
    result = rollout(tmp_path / "train", tmp_path / "engine")
    assert result["kl"] == pytest.approx(healthy.kl(), rel=1e-3)
    assert result["of"]["token"]["sentence"] == f"equal ({sum(map(len, healthy.prompts)) + healthy.tokens()})"
    assert accuses_nothing(result)


def test_no_gap(tmp_path, drawn):
    a, b = plain_lines(drawn, tmp_path / "a.jsonl", "train"), plain_lines(drawn, tmp_path / "b.jsonl", "rollout")
    result = rollout(a, b, code=0)
    assert result["kl"] == 0
    assert result["verdicts"] == UNSEEN | {
        "token": "agrees",
        "sampling": "agrees",
        "op": "not_seen",
        "round_off": "agrees",
    }


def test_texts_without_ids(tmp_path):
    """verl's rollout_data_dir."""
    line = {"input": "question", "output": "answer", "gts": None, "score": 1.0, "step": 1, "request_id": "a"}
    (tmp_path / "1.jsonl").write_text(json.dumps(line) + "\n")
    result = rollout(tmp_path, tmp_path, code=5)
    assert set(result["verdicts"].values()) == {"not_seen"}
    assert result["train"]["program"] == "verl" and result["of"]["token"]["next_run"]


# Tokens


def token_fault(name, r):
    """The engine's records and the trainer's, which computes on other ids than the engine returned."""
    train = copy.deepcopy(r)
    if name == "retokenised":
        # Two ids became one in the second request.
        train.responses[1][4:6] = [train.responses[1][4] + 1]
        train.train[1] = train.train[1][:-1]
    elif name == "truncated":
        train.responses[2] = train.responses[2][:-5]
        train.train[2] = train.train[2][:-5]
    elif name == "first_token_twice":
        train.prompts = [[p[0], *p] for p in train.prompts]
    elif name == "ids":
        train.responses[3][7] = (train.responses[3][7] + 1) % 90 + 2
    elif name == "padding_attended":
        train.prompts = [[PAD] * (8 - len(p)) + p for p in train.prompts]
    return train


@pytest.mark.parametrize(
    ("kind", "request_id", "position"),
    [
        ("retokenised", "r1", 5 + 4),
        ("truncated", "r2", 6 + 18 - 5),
        ("first_token_twice", "r0", 0),
        ("ids", "r3", 7 + 7),
        ("padding_attended", "r0", 0),
    ],
)
def test_other_tokens(tmp_path, healthy, kind, request_id, position):
    a = plain_lines(token_fault(kind, healthy), tmp_path / "a.jsonl", "train")
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout")
    result = rollout(a, b, code=1)
    assert (result["stage"], result["cause"]) == ("token", kind), result["headline"]
    place = result["of"]["token"]["place"]
    assert (place["request"], place["position"]) == (request_id, position)
    # Either side alone says nothing of the other.
    for one in (a, b):
        assert accuses_nothing(rollout(one, one, code=5))


def test_the_gap_says_which_requests_it_covers(tmp_path, drawn):
    a = plain_lines(token_fault("ids", drawn), tmp_path / "a.jsonl", "train")
    b = plain_lines(drawn, tmp_path / "b.jsonl", "rollout")
    result = rollout(a, b, code=1)
    lost = len(drawn.responses[3])
    assert result["left_out"] == {"requests": 1, "tokens": lost} and result["tokens"] == drawn.tokens() - lost
    assert f"{drawn.tokens() - lost} of {drawn.tokens()} tokens; 1 request left out" in result["headline"]
    assert "whose ids differ" in result["of"]["round_off"]["not_seen"][0]
    whole = rollout(b, b)
    assert whole["left_out"] == {"requests": 0, "tokens": 0} and "left out" not in whole["headline"]


@pytest.mark.parametrize("side", ["train", "rollout"])
@pytest.mark.parametrize("write", [verl_batch, nemo_lines], ids=lambda w: w.__name__)
def test_shifted_by_one(tmp_path, healthy, side, write):
    r = copy.deepcopy(healthy)
    setattr(r, side, [[-1.0, *lp[:-1]] for lp in getattr(r, side)])
    path = write(r, tmp_path / ("a.jsonl" if write is nemo_lines else "a.pt"))
    result = rollout(path, path, code=1)
    assert (result["stage"], result["cause"]) == ("token", "shift")
    assert result["of"]["token"]["share"] > 0.5


def test_one_request_of_several_is_shifted(tmp_path, healthy):
    r = copy.deepcopy(healthy)
    which = max(range(len(r.responses)), key=lambda i: len(r.responses[i]))
    r.rollout[which] = [-1.0, *r.rollout[which][:-1]]
    path = verl_batch(r, tmp_path / "a.pt")
    result = rollout(path, path, code=1)
    assert (result["stage"], result["cause"]) == ("token", "shift")
    assert result["of"]["token"]["place"]["request"].lstrip("#") == str(which)


def test_positions_that_count_padding(tmp_path, healthy):
    batch = torch.load(verl_batch(healthy, tmp_path / "a.pt"))
    width = batch["input_ids"].shape[1]
    path = verl_batch(
        healthy, tmp_path / "b.pt", position_ids=torch.arange(width).expand(len(healthy.prompts), -1).clone()
    )
    result = rollout(path, path, code=1)
    assert (result["stage"], result["cause"]) == ("token", "positions")
    assert "begin at 3" in result["headline"]
    assert result["of"]["token"]["place"]["request"] == "#0"


def test_masks_that_are_shifted(tmp_path, healthy):
    masks = [[0] * 3 + [1] * (len(x) - 3) for x in healthy.responses]
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", loss_mask=masks)
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", loss_mask=[[*m[1:], 1] for m in masks])
    result = rollout(a, b, code=1)
    assert (result["stage"], result["cause"]) == ("token", "mask")
    assert "shifted by one" in result["headline"]


def test_tokens_of_tools_are_left_out(tmp_path, healthy):
    """A conversation of several turns: the engine says nothing of what a tool wrote, and the masks say so."""
    r = copy.deepcopy(healthy)
    masks = [[1] * 4 + [0] * 4 + [1] * (len(x) - 8) for x in r.responses]
    for lp in r.rollout:
        lp[4:8] = [0.0] * 4
    a = plain_lines(r, tmp_path / "a.jsonl", "train", loss_mask=masks)
    b = plain_lines(r, tmp_path / "b.jsonl", "rollout", loss_mask=masks)
    result = rollout(a, b, code=5)
    assert result["tokens"] == r.tokens() - 4 * len(r.prompts)
    assert accuses_nothing(result) and result["kl"] < 0.01


def test_requests_in_another_order(tmp_path, healthy):
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train")
    lines = plain_lines(healthy, tmp_path / "b.jsonl", "rollout").read_text().splitlines()
    random.Random(1).shuffle(lines)
    without = [{k: v for k, v in json.loads(line).items() if k != "request_id"} for line in lines]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in without))
    result = rollout(a, tmp_path / "b.jsonl")
    assert result["kl"] == pytest.approx(healthy.kl(), rel=1e-3)
    assert accuses_nothing(result)


# Weights


@pytest.fixture(scope="module")
def steps():
    """Weights of the trainer at three steps."""
    first = weights(5)
    second = updated(first, 1)
    return [first, second, updated(second, 2)]


def weight_fault(name, steps):
    """The engine's weights after a synchronisation that went wrong; which weight shows it first."""
    old, new = steps[-2], steps[-1]
    state = dict(new)
    if name == "stale":
        return fused(old), None
    if name == "partial":
        for part in ("gate_proj", "up_proj", "down_proj"):
            key = f"model.layers.1.mlp.{part}.weight"
            state[key] = old[key]
        return fused(state), "model.layers.1.mlp.down_proj.weight"
    if name == "other_weight":
        state["model.layers.2.mlp.down_proj.weight"] = new["model.layers.1.mlp.down_proj.weight"]
        return fused(state), "model.layers.2.mlp.down_proj.weight"
    out = fused(state)
    if name == "exchanged_halves":
        gate_up = out["model.layers.0.mlp.gate_up_proj.weight"]
        out["model.layers.0.mlp.gate_up_proj.weight"] = gate_up.roll(gate_up.shape[0] // 2, 0).clone()
        return out, "model.layers.0.mlp.gate_proj.weight"
    if name == "exchanged_rows":
        qkv = out["model.layers.1.self_attn.qkv_proj.weight"]
        q = qkv[:32].view(4, 8, -1)
        qkv[:32] = q[[1, 0, 2, 3]].reshape(32, -1)
        return out, "model.layers.1.self_attn.q_proj.weight"
    if name == "part_stale":
        key = "model.layers.2.self_attn.o_proj.weight"
        out[key][16:] = old[key][16:]
        return out, key
    if name == "zeros":
        out["model.layers.0.mlp.down_proj.weight"].zero_()
        return out, "model.layers.0.mlp.down_proj.weight"
    raise AssertionError(name)


WEIGHT_FAULTS = {
    "stale": "stale",
    "partial": "partial",
    "other_weight": "other_weight",
    "exchanged_halves": "other_weight",
    "exchanged_rows": "exchanged_rows",
    "part_stale": "part_stale",
    "zeros": "zeros",
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", WEIGHT_FAULTS)
def test_weights_that_are_no_copy(tmp_path, steps, name, dtype):
    for i, state in enumerate(steps):
        save(tmp_path / "train" / f"step_{i}", state)
    out, weight = weight_fault(name, steps)
    engine = save(tmp_path / "engine", {k: w.to(dtype) for k, w in out.items()})
    result = rollout(tmp_path / "train", engine, code=1)
    assert (result["stage"], result["cause"]) == ("weight", WEIGHT_FAULTS[name]), result["headline"]
    if weight:
        assert result["of"]["weight"]["place"]["parameter"] == weight
    if name in ("stale", "partial", "part_stale"):
        assert "step 1" in result["headline"]
    # The steps beside that which was given are looked at, too.
    beside = rollout(tmp_path / "train" / "step_2", engine, code=1)
    assert beside["headline"] == result["headline"]
    # Without the earlier steps it is no copy all the same, and no cause is made up.
    alone = rollout(save(tmp_path / "alone", steps[2]), engine, code=1)
    known = {"stale": "another_step", "partial": "differs", "part_stale": "part"}
    assert alone["stage"] == "weight" and alone["cause"] == known.get(name, WEIGHT_FAULTS[name]), alone["headline"]


def test_rows_without_a_gradient_are_no_part_that_was_sent(tmp_path, steps):
    """Words that no text had keep their rows from step to step; all else is that of another one."""
    behind = dict(steps[1])
    table = "model.embed_tokens.weight"
    behind[table] = torch.cat([steps[1][table][:40], steps[2][table][40:]])
    train, engine = save(tmp_path / "train", steps[2]), save(tmp_path / "engine", fused(behind))
    assert rollout(train, engine, code=1)["cause"] == "another_step"
    # Asynchronous training may be behind; without its history nothing says how far.
    result = rollout(train, engine, "--allowed-lag", 2, code=5)
    assert accuses_nothing(result) and "--history" in result["of"]["weight"]["next_run"]


def test_a_tied_head_that_was_forgotten(tmp_path):
    old = weights(7, tied=True)
    new = updated(old, 1)
    train = save(tmp_path / "train" / "step_2", new, tie_word_embeddings=True)
    save(tmp_path / "train" / "step_1", old, tie_word_embeddings=True)
    engine = fused(new) | {"lm_head.weight": old["model.embed_tokens.weight"].clone()}
    save(tmp_path / "engine", engine, tie_word_embeddings=True)
    result = rollout(tmp_path / "train", tmp_path / "engine", code=1)
    assert (result["stage"], result["cause"]) == ("weight", "tied_head"), result["headline"]
    assert rollout(train, tmp_path / "engine", code=1)["stage"] == "weight"
    save(
        tmp_path / "right",
        fused(new) | {"lm_head.weight": new["model.embed_tokens.weight"].clone()},
        tie_word_embeddings=True,
    )
    assert rollout(train, tmp_path / "right", code=0)["verdicts"]["weight"] == "agrees"


def neox_weights(seed, plain=False, dtype=torch.float32):
    """A small GPT-NeoX of transformers; plain: q, k and v behind each other, as vLLM loads them."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": 2}
    state = GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=96, **sizes)).state_dict()
    state = {k: torch.randn(v.shape) for k, v in state.items()}
    for name in [k for k in state if "query_key_value" in k and plain]:
        state[name] = state[name].view(4, 3, 8, -1).transpose(0, 1).reshape(state[name].shape)
    return {k: v.to(dtype) for k, v in state.items()}, {"model_type": "gpt_neox", **sizes, "head_dim": 8}


def test_fused_projections_in_another_order(tmp_path):
    for step in (1, 2, 3):
        state, config = neox_weights(step)
        save(tmp_path / f"step_{step}", state, **config)
    for step in (2, 3):
        engine, _ = neox_weights(step, plain=True, dtype=torch.bfloat16)
        torch.save(engine, tmp_path / f"engine{step}.pt")
    same = rollout(tmp_path / "step_3", tmp_path / "engine3.pt", code=0)
    assert same["verdicts"]["weight"] == "agrees", same["headline"]
    history = ["--history", tmp_path / "step_1", tmp_path / "step_2"]
    lagging = rollout(tmp_path / "step_3", tmp_path / "engine2.pt", *history, "--allowed-lag", "1", code=0)
    assert lagging["verdicts"]["weight"] == "legitimate" and lagging["of"]["weight"]["kind"] == "stale"
    # A model has one order: where one layer alone has another, rows are exchanged.
    mixed, _ = neox_weights(3, dtype=torch.bfloat16)
    name = "gpt_neox.layers.1.attention.query_key_value.weight"
    torch.save(mixed | {name: torch.load(tmp_path / "engine3.pt")[name]}, tmp_path / "mixed.pt")
    wrong = rollout(tmp_path / "step_3", tmp_path / "mixed.pt", code=1)
    assert wrong["cause"] == "exchanged_rows" and wrong["of"]["weight"]["place"]["parameter"] == name


@pytest.mark.parametrize("behind", ["lm_head.weight", "model.embed_tokens.weight"])
@pytest.mark.parametrize("history", [True, False], ids=["history", "alone"])
def test_one_of_two_tied_copies_is_behind(tmp_path, behind, history):
    """The trainer has one weight, the engine a head of its own; the place is the engine's copy that is behind."""
    old = weights(7, tied=True)
    new = updated(old, 1)
    train = save(tmp_path / "train", new, tie_word_embeddings=True)
    before = save(tmp_path / "before", old, tie_word_embeddings=True)
    engine = fused(new) | {"lm_head.weight": new["model.embed_tokens.weight"].clone()}
    engine[behind] = old["model.embed_tokens.weight"].clone()
    save(tmp_path / "engine", engine, tie_word_embeddings=True)
    result = rollout(train, tmp_path / "engine", *(["--history", before] if history else []), code=1)
    assert (result["stage"], result["cause"]) == ("weight", "tied_head"), result["headline"]
    assert result["of"]["weight"]["place"]["parameter"] == behind, result["headline"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_weights_that_are_a_copy(tmp_path, steps, dtype):
    for i, state in enumerate(steps):
        save(tmp_path / "train" / f"step_{i}", state)
    engine = save(tmp_path / "engine", fused(steps[-1], dtype))
    result = rollout(tmp_path / "train", engine, code=0)
    assert result["verdicts"] == UNSEEN | {"weight": "agrees", "op": "not_seen", "round_off": "not_seen"}
    assert f"({3 + 9 * LAYERS})" in result["of"]["weight"]["sentence"]
    assert result["of"]["weight"]["sentence"].startswith("bit-equal" if dtype == torch.float32 else "equal up to")


def test_asynchronous_training_is_behind(tmp_path, steps):
    train = save(tmp_path / "now", steps[2])
    for i in range(2):
        save(tmp_path / "before" / f"step_{i}", steps[i])
    engine = save(tmp_path / "engine", fused(steps[1]))
    history = ["--history", tmp_path / "before"]
    assert rollout(train, engine, *history, code=1)["cause"] == "stale"
    result = rollout(train, engine, *history, "--allowed-lag", 1, code=0)
    assert result["verdicts"]["weight"] == "legitimate"
    older = save(tmp_path / "older", fused(steps[0]))
    assert rollout(train, older, *history, "--allowed-lag", 1, code=1)["cause"] == "stale"
    # A part that is behind is no lag.
    half = dict(steps[2])
    half["model.layers.0.mlp.down_proj.weight"] = steps[1]["model.layers.0.mlp.down_proj.weight"]
    assert (
        rollout(train, save(tmp_path / "half", fused(half)), *history, "--allowed-lag", 1, code=1)["cause"] == "partial"
    )


def test_a_quantised_engine(tmp_path, steps):
    state = fused(steps[-1])
    engine = {}
    for name, w in state.items():
        if w.dim() == 2 and "layers" in name:
            scale = w.abs().amax(1, keepdim=True) / 127
            engine[name] = (w / scale).round().to(torch.int8)
            engine[name + "_scale"] = scale
        else:
            engine[name] = w
    result = rollout(save(tmp_path / "a", steps[-1]), save(tmp_path / "b", engine), code=0)
    assert result["verdicts"]["weight"] == "legitimate" and result["of"]["weight"]["kind"] == "quantised"
    count = sum(w.dtype == torch.int8 for w in engine.values())
    parts = count + sum(
        2 if "qkv" in n else 1 for n in engine if n.endswith(("qkv_proj.weight", "gate_up_proj.weight"))
    )
    assert f"{parts} weights are stored in a few bits" in result["headline"]
    widened = {n: (engine[n].float() * engine[n + "_scale"] if n + "_scale" in engine else w) for n, w in state.items()}
    result = rollout(tmp_path / "a", save(tmp_path / "c", widened), code=0)
    assert result["of"]["weight"]["kind"] == "quantised"


def test_adapters_that_are_merged(tmp_path, steps):
    base, state = steps[0], dict(steps[0])
    train = {}
    generator = torch.Generator().manual_seed(3)
    for name, w in base.items():
        if "q_proj" not in name and "down_proj" not in name:
            train["base_model.model." + name] = w
            continue
        stem = "base_model.model." + name.removesuffix(".weight")
        a, b = torch.randn(4, w.shape[1], generator=generator), torch.randn(w.shape[0], 4, generator=generator) / 50
        train |= {
            f"{stem}.base_layer.weight": w,
            f"{stem}.lora_A.default.weight": a,
            f"{stem}.lora_B.default.weight": b,
        }
        state[name] = w + 2 * b @ a
    result = rollout(save(tmp_path / "a", train), save(tmp_path / "b", fused(state)), code=0)
    assert result["of"]["weight"]["kind"] == "merged", result["headline"]
    assert "as asked for: weights adapters merged into" in result["headline"]
    other = dict(state)
    other["model.layers.1.self_attn.o_proj.weight"] = steps[1]["model.layers.1.self_attn.o_proj.weight"]
    assert rollout(tmp_path / "a", save(tmp_path / "c", fused(other)), code=1)["stage"] == "weight"


def by_head(state, heads=4, head=8):
    """q, k and v of each head behind each other in one weight, as GPT-NeoX stores them; all heads have keys of their own."""
    generator = torch.Generator().manual_seed(21)
    out = {}
    for name, w in state.items():
        if ".q_proj." in name:
            grouped = torch.randn(heads, 3, head, w.shape[1], generator=generator)
            out[name.replace("q_proj", "query_key_value")] = grouped.reshape(-1, w.shape[1])
        elif ".k_proj." not in name and ".v_proj." not in name:
            out[name] = w
    return out


def one_behind_the_other(state, heads=4, head=8):
    """The same weights as engines have them."""
    return {
        name: w.view(heads, 3, head, -1).transpose(0, 1).reshape(w.shape) if "query_key_value" in name else w
        for name, w in state.items()
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_heads_of_another_step_in_fused_weights(tmp_path, steps, dtype):
    new = by_head(steps[-1])
    old = {name: w + 0.01 for name, w in new.items()}
    name = "model.layers.1.self_attn.query_key_value.weight"
    engine = {n: w.clone() for n, w in new.items()}
    engine[name].view(4, 3, 8, -1)[1:3] = old[name].view(4, 3, 8, -1)[1:3]
    engine = {n: w.to(dtype) for n, w in one_behind_the_other(engine).items()}
    config = {"num_key_value_heads": 4}
    train, theirs = save(tmp_path / "a", new, **config), save(tmp_path / "b", engine, **config)
    before = save(tmp_path / "before" / "step_1", old, **config)
    weight = rollout(train, theirs, code=1)["of"]["weight"]
    assert (weight["kind"], weight["place"]["parameter"]) == ("part", name)
    equal = "bit-equal" if dtype == torch.float32 else "equal in bfloat16"
    assert weight["sentence"] == f"{name}: heads 1 to 2 of q, k, v differ, the others are {equal}"
    assert any("48 of 96 rows equal" in e or "1536 of 3072 values equal" in e for e in weight["evidence"])
    weight = rollout(train, theirs, "--history", before, code=1)["of"]["weight"]
    assert weight["kind"] == "part_stale" and "heads 1 to 2 of q, k, v are those of step 1" in weight["sentence"]


def test_heads_that_no_configuration_names(tmp_path, steps):
    """Two files of weights alone: the parts of one side say how the other's fused ones are cut."""
    torch.save(steps[-1], tmp_path / "a.pt")
    engine = fused(steps[-1])
    torch.save(engine, tmp_path / "b.pt")
    result = rollout(tmp_path / "a.pt", tmp_path / "b.pt", code=0)
    assert result["verdicts"]["weight"] == "agrees", result["of"]["weight"]
    assert result["of"]["weight"]["figures"]["copies"] == len(steps[-1])
    qkv = engine["model.layers.2.self_attn.qkv_proj.weight"]
    qkv[:8], qkv[8:16] = qkv[8:16].clone(), qkv[:8].clone()
    torch.save(engine, tmp_path / "c.pt")
    weight = rollout(tmp_path / "a.pt", tmp_path / "c.pt", code=1)["of"]["weight"]
    assert weight["place"]["parameter"] == "model.layers.2.self_attn.q_proj.weight"


def experts_of(state, seed=11, experts=4):
    """A mixture of experts in place of the MLPs, under the names of transformers and of vLLM."""
    generator = torch.Generator().manual_seed(seed)
    mine = {name: w for name, w in state.items() if ".mlp." not in name}
    theirs = {name: w for name, w in fused(state).items() if ".mlp." not in name}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}.mlp."
        gate, up = torch.randn(2, experts, 16, 32, generator=generator)
        down = torch.randn(experts, 32, 16, generator=generator)
        mine[prefix + "gate.weight"] = theirs[prefix + "gate.weight"] = torch.randn(experts, 32, generator=generator)
        for e in range(experts):
            for name, table in (("gate_proj", gate), ("up_proj", up), ("down_proj", down)):
                mine[f"{prefix}experts.{e}.{name}.weight"] = table[e].clone()
        theirs[prefix + "experts.w13_weight"] = torch.cat([gate, up], 1)
        theirs[prefix + "experts.w2_weight"] = down
    return mine, theirs


MOE = {"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 16}


def test_experts_that_are_exchanged(tmp_path, steps):
    mine, theirs = experts_of(steps[-1])
    train = save(tmp_path / "train", mine, **MOE)
    right = rollout(train, save(tmp_path / "right", theirs, **MOE), code=0)
    assert right["of"]["weight"]["sentence"].startswith("bit-equal"), right["headline"]
    theirs["model.layers.1.mlp.experts.w2_weight"] = theirs["model.layers.1.mlp.experts.w2_weight"][[0, 2, 1, 3]]
    result = rollout(train, save(tmp_path / "engine", theirs, **MOE), code=1)
    assert (result["stage"], result["cause"]) == ("weight", "other_weight"), result["headline"]
    assert result["of"]["weight"]["place"]["parameter"] == "model.layers.1.mlp.experts.1.down_proj.weight"
    assert "experts.2.down_proj" in result["headline"]


def test_names_that_say_nothing(tmp_path, steps):
    """Equal values may be those of an exchanged weight, so nothing is called equal by them."""
    out = {f"w{i}": w for i, w in enumerate(steps[-1].values())}
    result = rollout(save(tmp_path / "a", steps[-1]), save(tmp_path / "b", out))
    assert result["verdicts"]["weight"] in ("unsure", "not_seen") or result["of"]["weight"]["not_seen"], result[
        "headline"
    ]
    out["w5"], out["w6"] = out["w6"], out["w5"]
    assert accuses_nothing(rollout(tmp_path / "a", save(tmp_path / "c", out)))


# Sampling


def cut(logits, top_p=1.0, top_k=0):
    """As engines leave words out: the fewest that make up top_p."""
    values, order = logits.sort(-1, descending=True)
    keep = values.softmax(-1).cumsum(-1) - values.softmax(-1) < top_p
    if top_k:
        keep &= torch.arange(values.shape[-1]) < top_k
    return torch.full_like(logits, -torch.inf).scatter(-1, order, torch.where(keep, values, -torch.inf))


def sampling_fault(name, r):
    r = copy.deepcopy(r)
    for i, (logits, ids) in enumerate(zip(r.rollout_logits, r.responses, strict=True)):
        plain = logits.log_softmax(-1)
        if name == "temperature":
            table = (logits / 0.7).log_softmax(-1)
        elif name == "temperature_twice":
            table = (logits / 0.49).log_softmax(-1)
        elif name == "divided_after":
            table = plain / 0.7
        else:
            # Only what a cut leaves can be drawn.
            table = cut(logits, **{name: 0.9 if name == "top_p" else 20}).log_softmax(-1)
            for t in range(len(ids)):
                if table[t, ids[t]] == -torch.inf:
                    ids[t] = int(table[t].argmax())
            r.train[i] = picked(r.train_logits[i].log_softmax(-1), ids)
        r.rollout[i] = picked(table, ids)
    return r


@pytest.mark.parametrize("told", [True, False], ids=["told", "not_told"])
@pytest.mark.parametrize("name", ["temperature", "temperature_twice", "divided_after", "top_p", "top_k"])
def test_other_sampling(tmp_path, name, told, healthy):
    r = sampling_fault(name, healthy)
    settings = {"temperature": 0.7} if told and "t" in name[:1] and "top" not in name else {}
    settings |= {name: 0.9 if name == "top_p" else 20} if told and "top" in name else {}
    a = plain_lines(r, tmp_path / "a.jsonl", "train")
    b = plain_lines(
        r, tmp_path / "b.jsonl", "rollout", logits=[x.tolist() for x in r.rollout_logits], sampling_params=settings
    )
    result = rollout(a, b, code=1)
    kind = {"temperature_twice": "temperature"}.get(name, name) if not told else name
    assert (result["stage"], result["cause"]) == ("sampling", kind), result["headline"]
    assert result["of"]["sampling"]["share"] > 0.9
    # Without logits: a division behind the softmax shows, nothing else does.
    bare = rollout(a, plain_lines(r, tmp_path / "c.jsonl", "rollout", sampling_params=settings))
    assert bare["verdicts"]["sampling"] == ("cause" if name == "divided_after" else "not_seen"), bare["headline"]


def test_a_division_behind_the_softmax_shows_without_logits(tmp_path, drawn):
    r = copy.deepcopy(drawn)
    r.rollout = [[v / 0.8 for v in lp] for lp in r.train]
    path = verl_batch(r, tmp_path / "a.pt")
    result = rollout(path, path, code=1)
    assert (result["stage"], result["cause"]) == ("sampling", "divided_after") and "0.8" in result["headline"]


@pytest.mark.parametrize("who", ["trainer", "engine"])
def test_a_division_shows_in_low_precision(tmp_path, healthy, who):
    """Rounding of an engine in bfloat16 lies on top; one file has both sides."""
    r = copy.deepcopy(healthy)
    if who == "trainer":
        r.train = [[v / 0.8 for v in lp] for lp in r.train]
    else:
        r.rollout = [[v / 0.8 for v in lp] for lp in r.rollout]
    path = verl_batch(r, tmp_path / "a.pt")
    result = rollout(path, path, code=1)
    assert (result["stage"], result["cause"]) == ("sampling", "divided_after"), result["headline"]
    assert f"the {who}'s log-probabilities are the" in result["headline"] and "divided by 0.8" in result["headline"]
    assert result["of"]["token"]["seen"] == f"one list of ids for both sides, {len(r.prompts)} requests"


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_same_sampling(tmp_path, healthy, temperature):
    r = copy.deepcopy(healthy)
    for i, ids in enumerate(r.responses):
        r.train[i] = picked((r.train_logits[i] / temperature).log_softmax(-1), ids)
        r.rollout[i] = picked((r.rollout_logits[i] / temperature).log_softmax(-1), ids)
    more = {"sampling_params": {"temperature": temperature}}
    a = plain_lines(r, tmp_path / "a.jsonl", "train", logits=[x.tolist() for x in r.train_logits], **more)
    b = plain_lines(r, tmp_path / "b.jsonl", "rollout", logits=[x.tolist() for x in r.rollout_logits], **more)
    result = rollout(a, b)
    assert result["verdicts"]["sampling"] == "agrees", result["of"]["sampling"]
    assert accuses_nothing(result)


@pytest.fixture(scope="module")
def exchanged():
    """Requests drawn by an engine in which two heads of a layer are exchanged, and the trainer's weights."""
    state = weights(5)
    engine = {name: w.clone() for name, w in state.items()}
    heads = engine["model.layers.1.self_attn.q_proj.weight"].view(4, 8, -1)
    heads[[0, 1]] = heads[[1, 0]]
    r = Rollout(engine, requests=12, engine=state)
    r.train_logits, r.rollout_logits = r.rollout_logits, r.train_logits
    return r, state, engine


@pytest.mark.parametrize(("train", "engine"), [(0.5, 1), (1, 1), (0.5, 0.5), (1, 0.5)])
def test_sampling_beside_another_fault(tmp_path, exchanged, train, engine):
    """The trainer has no logits, and those of the engine are of other weights: they must not pass for the trainer's."""
    r, state, faulty = copy.deepcopy(exchanged)
    for i, ids in enumerate(r.responses):
        r.train[i] = picked((r.train_logits[i] / train).log_softmax(-1), ids)
        r.rollout[i] = picked((r.rollout_logits[i] / engine).log_softmax(-1), ids)
    save(tmp_path / "train" / "model", state)
    save(tmp_path / "engine" / "model", fused(faulty))
    told = {"sampling_params": {"temperature": 0.5}}
    plain_lines(r, tmp_path / "train" / "a.jsonl", "train", **told)
    logits = [x.tolist() for x in r.rollout_logits]
    plain_lines(r, tmp_path / "engine" / "a.jsonl", "rollout", logits=logits, **told)
    result = rollout(tmp_path / "train", tmp_path / "engine", code=1)
    assert (result["stage"], result["cause"]) == ("weight", "exchanged_rows"), result["headline"]
    sampling = result["of"]["sampling"]
    assert sampling["figures"]["train_residual"] > 0.3
    if (train, engine) == (0.5, 1):
        assert (sampling["verdict"], sampling["kind"]) == ("cause", "raw"), sampling
        assert "; also sampling: the engine's log-probabilities are of the raw logits" in result["headline"]
    else:
        assert sampling["verdict"] == "unsure", sampling


# Routing


def with_experts(r, seed=0, layers=2, experts=8):
    """Router logits of the trainer and what both sides chose."""
    generator = torch.Generator().manual_seed(seed)
    logits = [
        torch.randn(len(p) + len(x), layers, experts, generator=generator)
        for p, x in zip(r.prompts, r.responses, strict=True)
    ]
    return logits, [x.topk(2, -1).indices for x in logits]


def test_experts_that_are_the_same(tmp_path, healthy):
    _, chosen = with_experts(healthy)
    lists = [c.tolist() for c in chosen]
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", routed_experts=lists)
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", routed_experts=[c.flip(-1).tolist() for c in chosen])
    assert rollout(a, b)["verdicts"]["routing"] == "agrees"


def test_experts_with_other_numbers(tmp_path, healthy):
    _, chosen = with_experts(healthy)
    theirs = [c.clone() for c in chosen]
    swap = torch.tensor([0, 1, 5, 3, 4, 2, 6, 7])
    for c in theirs:
        c[:, 1] = swap[c[:, 1]]
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", routed_experts=[c.tolist() for c in chosen])
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", routed_experts=[c.tolist() for c in theirs])
    result = rollout(a, b, code=1)
    assert (result["stage"], result["cause"]) == ("routing", "experts_renamed")
    assert "layer 1 have other numbers: 2 of the trainer is 5" in result["headline"]
    assert accuses_nothing(rollout(a, a, code=5)) and accuses_nothing(rollout(b, b, code=5))


@pytest.mark.parametrize(("size", "kind"), [(1.0, "flips"), (0.004, "near_ties")])
def test_flips_by_their_margin(tmp_path, healthy, size, kind):
    logits, chosen = with_experts(healthy)
    generator = torch.Generator().manual_seed(9)
    # A near tie in every third token.
    for x, c in zip(logits, chosen, strict=True):
        for t in range(0, len(x), 3):
            third = x[t, 0].topk(3).indices[2]
            x[t, 0, third] = x[t, 0, c[t, 0, 1]] - size / 4
    theirs = [(x + size * torch.randn(x.shape, generator=generator)).topk(2, -1).indices for x in logits]
    lists = {"routed_experts": [c.tolist() for c in chosen], "router_logits": [x.tolist() for x in logits]}
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", **lists)
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", routed_experts=[c.tolist() for c in theirs])
    result = rollout(a, b, code=1 if kind == "flips" else 5)
    assert result["of"]["routing"]["kind"] == kind, result["headline"]
    assert result["verdicts"]["routing"] == ("cause" if kind == "flips" else "round_off")
    without = plain_lines(healthy, tmp_path / "c.jsonl", "train", routed_experts=[c.tolist() for c in chosen])
    assert rollout(without, b)["verdicts"]["routing"] in ("unsure", "cause" if size == 1.0 else "unsure")


def in_bfloat16(logits, chosen, seed=5):
    """What a healthy engine in bfloat16 makes of them: a near tie in layer 0, and above it whatever follows from that."""
    generator = torch.Generator().manual_seed(seed)
    theirs = [x + 0.004 * torch.randn(x.shape, generator=generator) for x in logits]
    for x, y, c in zip(logits, theirs, chosen, strict=True):
        third = x[4, 0].topk(3).indices[2]
        x[4, 0, third] = x[4, 0, c[4, 0, 1]] - 0.001
        y[4, 0] = x[4, 0]
        y[4, 0, third] += 0.002
        y[4:, 1] += 0.8 * torch.randn(y[4:, 1].shape, generator=generator)
    return theirs


def routed(chosen, logits):
    return {"routed_experts": [c.tolist() for c in chosen], "router_logits": [x.tolist() for x in logits]}


def test_flips_that_follow_a_near_tie(tmp_path, healthy):
    logits, chosen = with_experts(healthy)
    theirs = in_bfloat16(logits, chosen)
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", **routed(chosen, logits))
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", **routed([y.topk(2, -1).indices for y in theirs], theirs))
    result = rollout(a, b, code=5)
    assert result["verdicts"]["routing"] == "round_off", result["headline"]
    assert result["of"]["routing"]["place"]["module"] == "layers.0"
    assert result["of"]["routing"]["figures"]["flips"] > len(logits)


def test_a_router_that_does_not_take_its_best(tmp_path, healthy):
    """The fault is in layer 1; a near tie in layer 0 is none, and comes first."""
    logits, chosen = with_experts(healthy)
    theirs = in_bfloat16(logits, chosen)
    picks = [y.topk(2, -1).indices for y in theirs]
    for y, c in zip(theirs, picks, strict=True):
        biased = y[:, 1].clone()
        biased[:, 5] += 1.5
        c[:, 1] = biased.topk(2, -1).indices
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", **routed(chosen, logits))
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", **routed(picks, theirs))
    result = rollout(a, b, code=1)
    assert (result["stage"], result["cause"]) == ("routing", "selection"), result["headline"]
    assert result["of"]["routing"]["place"]["module"] == "layers.1"


@pytest.mark.parametrize("rule", ["bias", "groups"])
def test_routers_that_choose_by_other_rules(tmp_path, healthy, rule):
    """Logits are equal, and the trainer adds a bias to them, or looks into the best groups, before it chooses."""
    logits, plain = with_experts(healthy)
    mine = []
    for x in logits:
        if rule == "bias":
            mine.append((x + torch.linspace(0, 2, x.shape[-1])).topk(2, -1).indices)
            continue
        groups = x.view(*x.shape[:-1], 4, 2)
        best = groups.sum(-1).argmax(-1, keepdim=True)
        mine.append(2 * best + torch.arange(2))
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", **routed(mine, logits))
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", **routed(plain, logits))
    routing = rollout(a, b, code=1)["of"]["routing"]
    assert (routing["verdict"], routing["kind"], routing["place"]["module"]) == ("cause", "selection", "layers.0")
    assert not any("router's logits: they" in line for line in routing["not_seen"])
    assert accuses_nothing(rollout(a, plain_lines(healthy, tmp_path / "c.jsonl", "rollout", **routed(mine, logits))))


def test_flips_with_equal_weights_are_no_fault_by_themselves(tmp_path, healthy, steps):
    r = copy.deepcopy(healthy)
    _, chosen = with_experts(r)
    theirs = [c.clone() for c in chosen]
    for c, prompt, values in zip(theirs, r.prompts, r.rollout, strict=True):
        c[len(prompt), 0, 1] = next(e for e in range(8) if e not in c[len(prompt), 0])
        values[1] -= 0.5
    for side, of in (("train", chosen), ("engine", theirs)):
        save(tmp_path / side / "weights", steps[-1])
        plain_lines(
            r,
            tmp_path / side / "a.jsonl",
            "train" if side == "train" else "rollout",
            routed_experts=[c.tolist() for c in of],
        )
    result = rollout(tmp_path / "train", tmp_path / "engine", code=5)
    assert result["verdicts"]["routing"] == "unsure" and result["of"]["routing"]["share"] > 0.5, result["headline"]


# Together


def test_records_and_weights(tmp_path, steps):
    """A stale engine in bfloat16, seen in records and weights; the weights lead."""
    r = Rollout(state=steps[-1], engine=steps[0], dtype=torch.bfloat16)
    for side, state in (("train", steps[-1]), ("engine", fused(steps[0], torch.bfloat16))):
        save(tmp_path / side / "weights", state)
    plain_lines(r, tmp_path / "train" / "a.jsonl", "train")
    plain_lines(r, tmp_path / "engine" / "a.jsonl", "rollout")
    save(tmp_path / "before" / "step_0", steps[0])
    done = run(
        ["rollout", tmp_path / "train", tmp_path / "engine", "--history", tmp_path / "before", "-o", tmp_path / "out"],
        check=False,
    )
    assert done.returncode == 1, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"KL {r.kl():.3g} (k3, {r.tokens()} tokens): weights: ") and "tokens equal" in first, first
    saved = json.loads((tmp_path / "out" / "msprobe_rollout.json").read_text())
    assert saved["stage"] == "weight" and saved["cause"] == "stale"
    page = (tmp_path / "out" / "msprobe_rollout.html").read_text()
    assert page.count("<rect") > 30 and "request r0, token" in page
    chinese = run(["rollout", tmp_path / "train", tmp_path / "engine"], check=False, env={"LC_ALL": "zh_CN.UTF-8"})
    assert "权重" in chinese.stdout and "not seen" not in chinese.stdout, chinese.stdout


def test_fail_on(tmp_path, steps):
    a, b = save(tmp_path / "a", steps[1]), save(tmp_path / "b", fused(steps[0]))
    for word, code in (("never", 0), ("bug", 1)):
        done = run(["rollout", a, b, "--fail-on", word], check=False)
        assert done.returncode == code, done.stderr


# Input that is wrong


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", '{"token_ids": [1, 2', "a.jsonl"),
        ("a.jsonl", '{"token_ids": ' + "[" * 300 + "]" * 300 + "}\n", "nests"),
        ("a.json", '{"loss": [1, 2]}', "nothing that is known"),
        ("a.pt", "no archive", "a.pt"),
    ],
)
def test_files_that_are_no_records(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    done = run(["rollout", tmp_path / name, tmp_path / name], check=False)
    assert done.returncode == 3 and says in done.stderr, (done.returncode, done.stderr)


def test_lists_of_other_lengths(tmp_path, drawn):
    r = copy.deepcopy(drawn)
    r.rollout = [lp[:-2] for lp in r.rollout]
    a, b = plain_lines(r, tmp_path / "a.jsonl", "train"), plain_lines(r, tmp_path / "b.jsonl", "rollout")
    result = rollout(a, b)
    assert result["kl"] is None and accuses_nothing(result)
    done = run(["rollout", a, b], check=False)
    assert "is left out" in done.stdout


def test_a_path_that_is_not_there(tmp_path):
    done = run(["rollout", tmp_path / "none", tmp_path / "none"], check=False)
    assert done.returncode == 3 and "none does not exist" in done.stderr


# Dumps


RECORDED = """
import sys
import torch
from msprobe.pytorch import PrecisionDebugger

state = torch.load(sys.argv[1])


class Layer(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.mlp = torch.nn.Module()
        for name in ("gate_proj", "up_proj"):
            weight = state[f"model.layers.{layer}.mlp.{name}.weight"]
            linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            linear.weight.data.copy_(weight)
            setattr(self.mlp, name, linear)

    def forward(self, x):
        return self.mlp.gate_proj(x) + self.mlp.up_proj(x)


model = torch.nn.Module()
model.model = torch.nn.Module()
model.model.layers = torch.nn.ModuleList([Layer(i) for i in range(2)])
debugger = PrecisionDebugger(task="tensor", level="L0", dump_path=sys.argv[2])
debugger.start(model)
for layer in model.model.layers:
    layer(torch.ones(3, 32))
debugger.stop()
debugger.step()
"""


def test_weights_in_dumps(tmp_path, steps):
    """The parameters of a recorded step stand for a checkpoint."""
    (tmp_path / "record.py").write_text(RECORDED)

    def record(state, name):
        torch.save(state, tmp_path / "state.pt")
        run_python([tmp_path / "record.py", tmp_path / "state.pt", tmp_path / name], cwd=tmp_path)
        return tmp_path / name

    a = record(steps[2], "a")
    same = rollout(a, record(steps[2], "b"))
    assert same["of"]["weight"]["sentence"] == "bit-equal (4)"
    other = dict(steps[2])
    other["model.layers.1.mlp.up_proj.weight"] = steps[2]["model.layers.0.mlp.up_proj.weight"]
    wrong = rollout(a, record(other, "c"), code=1)
    assert wrong["cause"] == "other_weight"
    assert wrong["of"]["weight"]["place"]["parameter"] == "model.layers.1.mlp.up_proj.weight"


def test_a_shard_is_no_fault(tmp_path, steps):
    out = fused(steps[2])
    for name in out:
        if "down_proj" in name or "o_proj" in name:
            out[name] = out[name][:, : out[name].shape[1] // 2]
    result = rollout(save(tmp_path / "a", steps[2]), save(tmp_path / "b", out), code=5)
    assert result["of"]["weight"]["kind"] == "shards"


@pytest.mark.parametrize("kind", ["temperature", "scale"])
def test_logits_of_the_trainer_alone(tmp_path, healthy, kind):
    """A wrong scale of the last norm looks like a temperature: only what the engine was told decides."""
    r = copy.deepcopy(healthy)
    for i, ids in enumerate(r.responses):
        r.rollout[i] = picked((r.rollout_logits[i] / 0.8).log_softmax(-1), ids)
    settings = {"temperature": 0.8} if kind == "temperature" else {}
    a = plain_lines(r, tmp_path / "a.jsonl", "train", logits=[x.tolist() for x in r.train_logits])
    b = plain_lines(r, tmp_path / "b.jsonl", "rollout", sampling_params=settings)
    result = rollout(a, b, code=1 if settings else 5)
    assert result["verdicts"]["sampling"] == ("cause" if settings else "unsure"), result["headline"]

"""msprobe rollout and weights: where evidence lies, which step it is of, and values that are not there."""

import copy
import json

import pytest
import torch
from graph_cases import run
from launch import run_python
from rollout_cases import LAYERS, Rollout, fused, plain_lines, rollout, save, updated, verl_batch, weights


@pytest.fixture(scope="module")
def healthy():
    return Rollout(dtype=torch.bfloat16)


@pytest.fixture(scope="module")
def steps():
    first = weights(5)
    second = updated(first, 1)
    return [first, second, updated(second, 2)]


# Records and dumps in a directory that is a checkpoint


RECORDED = """
import sys
import torch
from msprobe.pytorch import PrecisionDebugger


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x)


torch.manual_seed(int(sys.argv[2]))
model = Model()
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="L0")
debugger.start(model)
model(torch.ones(2, 4))
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("side", ["both", "train", "engine"])
def test_records_in_the_directory_of_a_checkpoint(tmp_path, healthy, steps, side):
    """One directory holds model.safetensors and a record, with what training leaves beside a model."""
    train, engine = save(tmp_path / "train", steps[2]), save(tmp_path / "engine", fused(steps[2]))
    late = copy.deepcopy(healthy)
    late.responses[2] = late.responses[2][:-5]
    late.train[2] = late.train[2][:-5]
    records = {"train": train, "engine": engine}
    if side != "both":
        records = {name: tmp_path / f"{name}_records" for name in records} | {side: records[side]}
    for directory in records.values():
        directory.mkdir(exist_ok=True)
    verl_batch(late, records["train"] / "batch.pt", sides=("train",))
    plain_lines(healthy, records["engine"] / "requests.jsonl", "rollout")
    for name in ("optimizer.pt", "rng_state.pth", "training_args.bin"):
        torch.save({"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": []}, train / name)
    (train / "trainer_state.json").write_text(json.dumps({"global_step": 3, "log_history": []}))
    (train / "vocab.json").write_text(json.dumps({"tokens": 3, "response": 4, "text": 5}))
    also = []
    if side != "both":
        other = "engine" if side == "train" else "train"
        also = ["--also-train" if other == "train" else "--also-rollout", records[other]]
    result = rollout(train, engine, *also, code=1)
    assert (result["stage"], result["cause"]) == ("token", "truncated"), result["headline"]
    assert result["of"]["weight"]["verdict"] == "agrees"
    assert result["train"]["requests"] == result["rollout"]["requests"] == len(healthy.prompts)
    assert result["train"]["notes"] == [] and result["rollout"]["notes"] == []


def test_a_dump_in_the_directory_of_a_checkpoint(tmp_path, steps, healthy):
    (tmp_path / "record.py").write_text(RECORDED)
    for seed, name in enumerate(("train", "engine")):
        directory = save(tmp_path / name, steps[2] if name == "train" else fused(steps[2]))
        run_python([tmp_path / "record.py", directory / "dump", seed])
    result = rollout(tmp_path / "train", tmp_path / "engine")
    assert result["train"]["dumps"] == result["rollout"]["dumps"] == 1
    assert result["of"]["weight"]["verdict"] == "agrees"
    # A record beside dump.json is found, too.
    rank = next((tmp_path / "train" / "dump" / "step0").iterdir())
    plain_lines(healthy, rank / "requests.jsonl", "train")
    assert rollout(rank, tmp_path / "engine")["train"]["requests"] == len(healthy.prompts)


def test_other_weights_in_a_checkpoint_are_named(tmp_path, steps):
    train, engine = save(tmp_path / "train", steps[2]), save(tmp_path / "engine", fused(steps[2]))
    save(train / "checkpoint-1", steps[1])
    torch.save(steps[0], train / "reference.pt")
    notes = rollout(train, engine, code=0)["train"]["notes"]
    assert len(notes) == 2 and "checkpoint-1" in notes[0] and "reference.pt" in notes[1], notes


def test_words_of_a_vocabulary_are_no_record(tmp_path, steps):
    """A JSON of words has the keys of records, with numbers behind them."""
    words = tmp_path / "words"
    words.mkdir()
    (words / "added.json").write_text(json.dumps({"tokens": 3, "response": 4, "logprobs": 5, "text": 6}))
    save(words / "weights", steps[0])
    result = rollout(words, save(tmp_path / "engine", fused(steps[0])), code=0)
    assert result["train"]["requests"] == 0


def test_the_policy_is_the_actor(tmp_path, steps):
    """A step of verl holds an actor and a critic."""
    step = tmp_path / "global_step_3"
    save(step / "actor", steps[2])
    save(step / "critic", updated(steps[2], 9, size=1.0))
    result = rollout(step, save(tmp_path / "engine", fused(steps[2])), code=0)
    assert [path.endswith("actor") for path in result["train"]["weights"]] == [True]
    assert "critic" in result["train"]["notes"][0]


# Which step weights are of


@pytest.fixture
def tree(tmp_path, steps):
    """run/global_step_5 to 7, the weights of each in a directory below, and an engine with those of step 5."""
    for number, state in zip((5, 6, 7), steps, strict=True):
        save(tmp_path / "run" / f"global_step_{number}" / "actor" / "huggingface", state)
    save(tmp_path / "engine", fused(steps[0]))
    return tmp_path


def test_earlier_steps_beside_that_of_the_trainer(tree):
    for train in ("global_step_7", "global_step_7/actor", "global_step_7/actor/huggingface"):
        weight = rollout(tree / "run" / train, tree / "engine", "--allowed-lag", 2, code=0)["of"]["weight"]
        assert weight["kind"] == "stale" and "the weights of step 5, 2 updates behind" in weight["sentence"]
        assert rollout(tree / "run" / train, tree / "engine", code=1)["cause"] == "stale"
    alone = rollout(tree / "run" / "global_step_6", tree / "engine", code=1)["of"]["weight"]
    assert "the weights of step 5, 1 update behind" in alone["sentence"]


@pytest.mark.parametrize("tracker", [True, False])
def test_a_history_that_holds_the_trainers_own_step(tree, steps, tracker):
    if tracker:  # as verl keeps one
        (tree / "run" / "latest_checkpointed_iteration.txt").write_text("7")
    history = ["--history", tree / "run"]
    copied = save(tree / "trainer", steps[2])  # its number is not known, its content is that of step 7
    for train in (tree / "run" / "global_step_7", copied):
        weight = rollout(train, tree / "engine", *history, "--allowed-lag", 2, code=0)["of"]["weight"]
        assert "step 5, 2 updates behind" in weight["sentence"], weight["sentence"]


def test_the_number_of_a_history_stands_above_its_weights(tree, steps):
    train = save(tree / "trainer", steps[2])
    history = ["--history", tree / "run" / "global_step_5"]
    weight = rollout(train, tree / "engine", *history, code=1)["of"]["weight"]
    assert weight["sentence"].startswith("the engine has the weights of step 5, 1 update behind")
    plain = save(tree / "earlier", steps[0])
    weight = rollout(train, tree / "engine", "--history", plain, code=1)["of"]["weight"]
    assert weight["sentence"].startswith(f"the engine has the weights of {plain}, ")


def test_a_directory_above_that_is_called_by_chance(tmp_path, steps):
    """The trainer lies in steps_v1, which is no step: its number is not that of the history's step_1."""
    train = save(tmp_path / "steps_v1" / "train", steps[2])
    save(tmp_path / "history" / "step_1", steps[1])
    save(tmp_path / "engine", fused(steps[1]))
    weight = rollout(train, tmp_path / "engine", "--history", tmp_path / "history", code=1)["of"]["weight"]
    assert "the weights of step 1, 1 update behind" in weight["sentence"]
    # In two places, the same number is of two runs.
    train = save(tmp_path / "run" / "step_1", steps[2])
    weight = rollout(train, tmp_path / "engine", "--history", tmp_path / "history", code=1)["of"]["weight"]
    assert "the weights of step 1, 1 update behind" in weight["sentence"]


def test_an_engine_ahead_of_the_checkpoint(tree, steps):
    """The trainer's checkpoint is the older one: no lag allows that."""
    history = ["--history", tree / "run"]
    save(tree / "newer", fused(steps[2]))
    result = rollout(tree / "run" / "global_step_5", tree / "newer", *history, "--allowed-lag", 2, code=1)
    assert "the weights of step 7, 2 updates ahead" in result["of"]["weight"]["sentence"]


# Tokens


@pytest.mark.parametrize("side", ["train", "rollout"])
def test_two_lists_do_not_say_which_is_shifted(tmp_path, healthy, side):
    r = copy.deepcopy(healthy)
    setattr(r, side, [[-1.0, *lp[:-1]] for lp in getattr(r, side)])
    path = verl_batch(r, tmp_path / "a.pt")
    token = rollout(path, path, code=1)["of"]["token"]
    assert token["kind"] == "shift" and "one token apart" in token["sentence"]
    assert "do not say" in token["sentence"]
    assert f"{len(r.prompts)} requests show that" in token["evidence"][0]


@pytest.mark.parametrize("end", ["last", "first"])
def test_a_mask_that_leaves_out_an_end_is_not_shifted(tmp_path, healthy, end):
    full = [[1] * len(x) for x in healthy.responses]
    cut = copy.deepcopy(full)
    cut[2][-1 if end == "last" else 0] = 0
    a = plain_lines(healthy, tmp_path / "a.jsonl", "train", loss_mask=cut)
    b = plain_lines(healthy, tmp_path / "b.jsonl", "rollout", loss_mask=full)
    token = rollout(a, b, code=1)["of"]["token"]
    assert token["kind"] == "mask" and "at token" in token["sentence"] and "shifted" not in token["sentence"]
    assert "the trainer leaves it out, the engine counts it" in token["sentence"]
    assert "1 request shows that" in token["evidence"][0]


# Heads


@pytest.mark.parametrize("order", ["grouped", "plain"])
@pytest.mark.parametrize("behind", [0, 1])
def test_parts_say_how_fused_weights_are_cut(tmp_path, steps, order, behind):
    """query_key_value of grouped queries, and no configuration: the values say where q, k and v lie."""
    engine = {}
    for name, w in fused(steps[2 - behind]).items():
        if "qkv_proj" not in name:
            engine[name] = w
            continue
        q, k, v = w.split([32, 16, 16])  # 4 heads of 8, 2 groups
        grouped = torch.cat([q.view(2, 16, -1), k.view(2, 8, -1), v.view(2, 8, -1)], 1).reshape(w.shape)
        engine[name.replace("qkv_proj", "query_key_value")] = grouped if order == "grouped" else w
    torch.save(steps[2], tmp_path / "a.pt")
    torch.save({k: w.bfloat16().clone() for k, w in engine.items()}, tmp_path / "b.pt")
    weight = rollout(tmp_path / "a.pt", tmp_path / "b.pt", code=behind)["of"]["weight"]
    assert weight["figures"]["pairs"] == len(steps[2]), weight
    assert weight["kind"] == ("another_step" if behind else "")


# Values that are not there


def packed(state):
    """What state_dict() of an engine on a CPU holds: linear weights are packed elsewhere, and scales are beside them."""
    out = {}
    for name, w in fused(state).items():
        out[name] = torch.zeros(0) if "layers" in name and w.dim() == 2 else w
    for layer in range(LAYERS):
        for scale in ("_k_scale", "_v_scale", "_q_scale", "_prob_scale"):
            out[f"model.layers.{layer}.self_attn.attn.{scale}"] = torch.tensor(1.0)
    return out


PACKED = 7 * LAYERS


@pytest.mark.parametrize("config", [True, False], ids=["config", "alone"])
def test_weights_that_are_packed_elsewhere(tmp_path, steps, healthy, config):
    train = save(tmp_path / "train", steps[2])
    if not config:
        (train / "config.json").unlink()
    torch.save(packed(steps[2]), tmp_path / "engine.pt")
    weight = rollout(train, tmp_path / "engine.pt", code=5)["of"]["weight"]
    assert (weight["verdict"], weight["kind"]) == ("unsure", "absent"), weight
    assert f"the values of {PACKED} weights are not there" in weight["sentence"] and weight["next_run"]
    done = run(["weights", "compare", train, tmp_path / "engine.pt", "--json"], check=False)
    assert done.returncode == 5, done.stdout
    verdicts = {w["verdict"] for w in json.loads(done.stdout)["weights"]}
    assert verdicts == {"bit-equal", "cannot say"}
    # What is there is judged, and other stages go on.
    wrong = packed(steps[2]) | {"lm_head.weight": steps[1]["lm_head.weight"]}
    torch.save(wrong, tmp_path / "wrong.pt")
    result = rollout(train, tmp_path / "wrong.pt", code=1)
    assert result["of"]["weight"]["place"]["parameter"] == "lm_head.weight"
    assert any("not there" in line for line in result["of"]["weight"]["also"])
    assert run(["weights", "compare", train, tmp_path / "wrong.pt"], check=False).returncode == 1


def test_shards_that_were_not_gathered(tmp_path, steps):
    """ZeRO-3 and FSDP leave nothing of a weight in a state dict of one rank."""
    torch.save({name: torch.zeros(0) for name in steps[2]}, tmp_path / "train.pt")
    engine = save(tmp_path / "engine", fused(steps[2]))
    assert rollout(tmp_path / "train.pt", engine, code=5)["of"]["weight"]["kind"] in ("absent", "unpaired")
    assert run(["weights", "compare", tmp_path / "train.pt", engine], check=False).returncode == 5
    assert run(["weights", "compare", tmp_path / "train.pt", tmp_path / "train.pt"], check=False).returncode == 5


def test_lag_is_not_allowed_for_values_that_are_not_there(tmp_path, steps):
    train = save(tmp_path / "step_2", steps[2])
    save(tmp_path / "step_1", steps[1])
    torch.save(packed(steps[1]), tmp_path / "engine.pt")
    weight = rollout(train, tmp_path / "engine.pt", "--allowed-lag", 1, code=5)["of"]["weight"]
    assert weight["kind"] == "absent" and any("step 1, 1 update behind" in line for line in weight["also"])


def test_a_file_that_torch_save_did_not_finish(tmp_path, steps):
    class Weight(torch.nn.Parameter):
        pass

    weight = Weight(torch.ones(3))
    weight.loader = lambda: None
    with pytest.raises(Exception, match="pickle"):
        torch.save({"a": weight}, tmp_path / "engine.pt")
    done = run(["rollout", save(tmp_path / "train", steps[0]), tmp_path / "engine.pt"], check=False)
    assert done.returncode == 3 and "begun by torch.save()" in done.stderr and "state_dict()" in done.stderr
    (tmp_path / "side").mkdir()
    (tmp_path / "engine.pt").rename(tmp_path / "side" / "engine.pt")
    done = run(["rollout", tmp_path / "train", tmp_path / "side"], check=False)
    assert done.returncode == 3 and "begun by torch.save()" in done.stderr

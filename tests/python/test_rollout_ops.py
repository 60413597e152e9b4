"""The stage "op" of `msprobe rollout`, from dumps of a trainer and of a small engine (tests/rollout): faults are named, healthy pairs are not."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from launch import REPO

pytest.importorskip("transformers")
sys.path.insert(0, str(REPO / "tests" / "rollout"))

from pairs import CASES, PROMPTS

MSPROBE = Path(sys.executable).with_name("msprobe")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    out = tmp_path_factory.mktemp("pairs")
    script = REPO / "tests" / "rollout" / "pairs.py"
    subprocess.run([sys.executable, str(script), str(out)], check=True, capture_output=True, timeout=600)
    return out


def op_stage(train, rollout):
    done = subprocess.run([MSPROBE, "rollout", train, rollout, "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1, 5), done.stderr
    [stage] = [s for s in json.loads(done.stdout)["stages"] if s["stage"] == "op"]
    return stage


@pytest.mark.parametrize("name", CASES)
def test_the_first_operation_is_named(dumps, name):
    case = CASES[name]
    stage = op_stage(dumps / name / "train", dumps / name / "engine")
    if not case.expect:
        assert stage["verdict"] in ("agrees", "round_off"), stage
        return
    assert (stage["verdict"], stage["place"]["module"], stage["kind"]) == ("cause", case.expect, case.kind)
    assert stage["figures"]["explained"] > 0.9 or case.kind in ("op", "prefix_cache")


def test_a_head_that_is_no_call_is_no_lost_weight(dumps):
    """The engine's logits are made from the head's weight, not by calling it, so a dump does not have the weight."""
    sides = [dumps / "clean_window" / side for side in ("train", "engine")]
    done = subprocess.run([MSPROBE, "rollout", *sides, "--json"], capture_output=True, text=True)
    result = json.loads(done.stdout)
    assert not [s for s in result["stages"] if s["verdict"] == "cause"], result["headline"]


def test_head_says_its_share(dumps):
    stage = op_stage(dumps / "fp16_logits" / "train", dumps / "fp16_logits" / "engine")
    assert stage["share"] > 0.95


def test_rows_that_are_not_known_are_not_guessed(dumps, tmp_path):
    """Without the schedule, and with one that is wrong: nothing is compared with the rows of another request."""
    source = dumps / "clean_fp32"
    for kind, of_rows in (("other", lambda rows: rows[::-1]), ("none", lambda rows: None)):
        engine = tmp_path / kind
        for dump in sorted((source / "engine").glob("step*/*/dump.json")):
            to = engine / dump.relative_to(source / "engine").parent
            to.mkdir(parents=True)
            record = json.loads(dump.read_text())
            rows = of_rows(record.pop("schedule"))
            (to / "dump_tensor_data").symlink_to(dump.parent / "dump_tensor_data")
            record["dump_data_dir"] = str(dump.parent / "dump_tensor_data")
            (to / "dump.json").write_text(json.dumps({**record, **({"schedule": rows} if rows else {})}))
        assert op_stage(source / "train", engine)["verdict"] in ("round_off", "not_seen")


def test_statistics_alone_show_no_operation(dumps, tmp_path):
    for side in ("train", "engine"):
        for dump in sorted((dumps / "scale" / side).glob("step*/*/dump.json")):
            to = tmp_path / side / dump.relative_to(dumps / "scale" / side)
            to.parent.mkdir(parents=True)
            to.write_text(dump.read_text())
    stage = op_stage(tmp_path / "train", tmp_path / "engine")
    assert stage["verdict"] == "not_seen"
    assert "task tensor" in stage["next_run"]


def test_compare_says_who_answers(dumps):
    """Op by op a healthy pair would be called a bug."""
    train, engine = dumps / "clean_fp32" / "train", dumps / "clean_fp32" / "engine" / "step0"
    [step] = train.iterdir()
    for target, golden in ((step, engine), (engine, step)):
        command = [MSPROBE, "compare", "-tp", target, "-gp", golden, "-o", train.parent / "out"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 5
        assert f"msprobe rollout {step} {engine} aligns them" in " ".join(done.stderr.split())


def _parts(name, item):
    """How an item of the engine lies on two ranks: the widths of what is cut in half; none where each has it whole."""
    halves = {
        "qkv_proj": {"output": (64, 32, 32)},
        "rotary_emb": {"input_args": (-1,), "output": (-1,)},
        "attn": {"input_args": (-1,), "output": (-1,)},
        "o_proj": {"input_args": (-1,)},
        "gate_up_proj": {"output": (96, 96)},
        "act_fn": {"input_args": (96, 96), "output": (-1,)},
        "down_proj": {"input_args": (-1,)},
    }
    return halves.get(name.split(".")[-4], {}).get(item, ())


def test_ranks_that_share_tensors_are_joined(dumps, tmp_path):
    """Tensor parallelism: each rank has half of the heads and of the MLP."""
    torch = pytest.importorskip("torch")
    for dump in sorted((dumps / "scale" / "engine").glob("step*/*/dump.json")):
        for rank in (0, 1):
            record = json.loads(dump.read_text())
            to = tmp_path / dump.parts[-3] / f"rank{rank}"
            (to / "dump_tensor_data").mkdir(parents=True)
            for name, op in record["data"].items():
                for kind in ("input_args", "output"):
                    for item in op[kind]:
                        if not isinstance(item, dict) or "data_name" not in item:
                            continue
                        tensor = torch.load(dump.parent / "dump_tensor_data" / item["data_name"])
                        widths = _parts(name, kind) if tensor.is_floating_point() else ()
                        if widths:
                            cut = tensor.split([tensor.shape[-1]] if widths == (-1,) else list(widths), -1)
                            tensor = torch.cat([part.chunk(2, -1)[rank] for part in cut], -1).contiguous()
                        item["shape"] = list(tensor.shape)
                        torch.save(tensor, to / "dump_tensor_data" / item["data_name"])
            (to / "dump.json").write_text(json.dumps(record))
    stage = op_stage(dumps / "scale" / "train", tmp_path)
    assert (stage["verdict"], stage["place"]["module"], stage["kind"]) == (
        "cause",
        "layers.0 attention",
        "attention_scale",
    )
    assert stage["seen"].startswith("49 places")


def test_a_difference_below_rounding_says_why_it_is_named(dumps):
    stage = op_stage(dumps / "eps_small" / "train", dumps / "eps_small" / "engine")
    assert stage["figures"]["error"] < 2e-5
    assert "rounding may make as much, but the eps explains 96 % of it" in stage["evidence"][0]


def test_all_requests_behind_a_cached_prefix_are_named(dumps):
    stage = op_stage(dumps / "older_pages" / "train", dumps / "older_pages" / "engine")
    assert "behind a cached prefix are wrong (d), those that do not are right (a, b, c)" in stage["sentence"]


def test_what_both_sides_recorded_is_seen(dumps):
    """Norms of heads ahead of tokens, angles of several kinds of layers, logits of complete prompts only."""
    train, engine = dumps / "clean_ahead" / "train", dumps / "clean_ahead" / "engine"
    done = subprocess.run([MSPROBE, "rollout", train, engine, "--json"], capture_output=True, text=True)
    stages = {stage["stage"]: stage for stage in json.loads(done.stdout)["stages"]}
    assert not any("one side alone" in line for line in stages["op"]["not_seen"])
    assert stages["weight"]["verdict"] == "agrees" and "unpaired" not in stages["weight"]["kind"]


def saved(path, name, kind):
    """The first tensor of a kind of a module's call, as its dump has it."""
    [entry] = [entry for op, entry in json.loads(path.read_text())["data"].items() if name in op and ".forward." in op]
    return torch.load(path.parent / "dump_tensor_data" / entry[kind][0]["data_name"]).numpy()


def engine_steps(dumps):
    """(schedule, ids, logits) of each step of an engine."""
    for path in sorted(dumps.glob("step*/*/dump.json"), key=lambda p: int(p.parts[-3].removeprefix("step"))):
        schedule = json.loads(path.read_text())["schedule"]
        yield schedule, saved(path, "embed_tokens", "input_args"), saved(path, "logits_processor", "output")


def log_softmax(row):
    row = row.astype(np.float64) - row.max()
    return row - np.log(np.exp(row).sum())


@pytest.mark.parametrize("beside", [True, False], ids=["both dumps", "engine alone"])
def test_sampling_takes_logits_from_the_dumps(dumps, tmp_path, beside):
    """Neither record holds logits; the engine wrote log-probabilities of raw ones, the trainer divided by the temperature."""
    tokens, rows = {name: [] for name in PROMPTS}, {}
    for schedule, ids, logits in engine_steps(dumps / "clean_fp32" / "engine"):
        begin = 0
        for place, part in enumerate(schedule):
            tokens[part["request"]] += ids[begin : begin + part["tokens"]].tolist()
            begin += part["tokens"]
            rows[part["request"], len(tokens[part["request"]]) - 1] = logits[place]
    for side, temperature in (("train", 0.5), ("engine", 1.0)):
        (tmp_path / side).mkdir()
        lines = []
        for name, length in PROMPTS.items():
            answer = tokens[name][length:]
            said = [log_softmax(rows[name, length - 1 + i] / temperature)[t] for i, t in enumerate(answer)]
            line = {"request_id": name, "prompt_token_ids": tokens[name][:length], "token_ids": answer}
            lines.append(json.dumps({**line, "logprobs": said, "sampling_params": {"temperature": 0.5}}))
        (tmp_path / side / "requests.jsonl").write_text("\n".join(lines))
        if beside or side == "engine":
            (tmp_path / side / "dump").symlink_to(dumps / "clean_fp32" / side)
    sides = [tmp_path / side for side in ("train", "engine")]
    given = [option for side, which in zip(sides, ("--also-train", "--also-rollout")) if (side / "dump").exists()
             for option in (which, (side / "dump").resolve())]  # fmt: skip
    done = subprocess.run([MSPROBE, "rollout", *sides, *given, "--json"], capture_output=True, text=True)
    result = json.loads(done.stdout)
    [stage] = [s for s in result["stages"] if s["stage"] == "sampling"]
    assert (stage["verdict"], stage["kind"]) == ("cause", "raw"), stage
    assert stage["seen"].startswith("logits of both sides" if beside else "logits of the engine")
    assert result["stage"] == "sampling"

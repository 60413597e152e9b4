"""The stage "op" of `msprobe rollout`, from dumps of a trainer and of a small engine (tests/rollout): faults are named, healthy pairs are not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launch import REPO

pytest.importorskip("transformers")
sys.path.insert(0, str(REPO / "tests" / "rollout"))

from pairs import CASES

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

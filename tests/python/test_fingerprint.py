"""Fingerprints of weights: what a trainer and an engine hold, compared without either side gathering."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from engine_weights import SIZES, engine_state, trainer
from graph_cases import run
from msprobe.pytorch import PrecisionDebugger
from safetensors.torch import save_file

CONFIG = transformers.LlamaConfig(**SIZES)


def state_of(model):
    """Copies, so that a fault planted in one is in no other."""
    return {name: t.clone() for name, t in model.state_dict().items()}


def write(weights, path, **options):
    print_ = PrecisionDebugger.fingerprint(weights, path=path, **options)
    assert print_ is not None
    return print_


def compare(a, b, *options):
    done = run(["weights", "compare", str(a), str(b), "--json", *map(str, options)], check=False)
    assert done.returncode in (0, 1, 5), done.stderr
    return done.returncode, json.loads(done.stdout)


def engine_files(state, directory, size=1, experts=1, config=None, **options):
    directory.mkdir()
    for rank in range(size):
        for expert in range(experts):
            held = engine_state(state, rank, size, experts=(expert, experts), **options)
            parallel = {"tensor_parallel": (rank, size), "expert_parallel": (expert, experts)}
            write(held, directory / f"rank{rank}_{expert}.json", config=config or CONFIG, **parallel)
    return directory


def findings(result):
    return [w for w in result["weights"] if w["verdict"] not in ("bit-equal", "not seen")]


@pytest.mark.parametrize("kind", ["dense", "bias", "tied", "experts"])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_clean_copies_are_equal(kind, size, tmp_path):
    model = trainer(kind)
    write(model, tmp_path / "trainer.json")
    state = state_of(model)
    if kind == "tied":
        del state["lm_head.weight"]
    # With 8 ranks each group of heads is on two of them; experts are 4.
    rank_size, experts = (size // 2, 2) if kind == "experts" and size > 1 else (size, 1)
    engine = engine_files(state, tmp_path / "engine", rank_size, experts, model.config, padded=128)
    code, result = compare(tmp_path / "trainer.json", engine)
    assert findings(result) == [] and code == 0, findings(result)
    assert result["equal"] == len(result["weights"]) > 20
    assert compare(engine, tmp_path / "trainer.json")[0] == 0


def _rows(state, name, first, second, count):
    t = state[name]
    kept = t[first : first + count].clone()
    t[first : first + count] = t[second : second + count]
    t[second : second + count] = kept


def _fault(name, state, before):
    layer = "model.layers.1."
    attention, mlp = layer + "self_attn.", layer + "mlp."
    if name == "rows":
        _rows(state, mlp + "down_proj.weight", 3, 4, 1)
    elif name == "heads":
        _rows(state, attention + "q_proj.weight", 8, 24, 8)
    elif name == "groups":
        for part in ("k_proj", "v_proj"):
            _rows(state, attention + part + ".weight", 0, 8, 8)
    elif name == "halves":
        up = state[mlp + "up_proj.weight"]
        state[mlp + "up_proj.weight"] = state[mlp + "gate_proj.weight"]
        state[mlp + "gate_proj.weight"] = up
    elif name == "columns":
        t = state[attention + "o_proj.weight"]
        t[:, [1, 2]] = t[:, [2, 1]]
    elif name == "bit":
        state[attention + "v_proj.weight"].view(torch.int16)[5, 7] ^= 1
    elif name == "sign of zero":
        state[mlp + "gate_proj.weight"][0, 0] = 0.0
        before[mlp + "gate_proj.weight"][0, 0] = -0.0
    elif name == "other layer":
        state[attention + "q_proj.weight"].copy_(state["model.layers.0.self_attn.q_proj.weight"])
    elif name == "norm":
        state[layer + "input_layernorm.weight"].copy_(state["model.layers.0.input_layernorm.weight"])
    elif name == "words":
        _rows(state, "model.embed_tokens.weight", 10, 11, 1)
    elif name == "missing":
        del state[layer + "post_attention_layernorm.weight"]


FAULTS = {
    "rows": "down_proj",
    "heads": "q_proj",
    "groups": "k_proj",
    "halves": "gate_proj",
    "columns": "o_proj",
    "bit": "v_proj",
    "sign of zero": "gate_proj",
    "other layer": "q_proj",
    "norm": "input_layernorm",
    "words": "embed_tokens",
    "missing": "post_attention_layernorm",
}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found_and_named(fault, size, tmp_path):
    before = state_of(trainer())
    state = {name: t.clone() for name, t in before.items()}
    _fault(fault, state, before)
    model = trainer()
    model.load_state_dict(before)
    write(model, tmp_path / "trainer.json")
    engine = engine_files(state, tmp_path / "engine", size)
    code, result = compare(tmp_path / "trainer.json", engine, "--fail-on", "suspicious")
    if fault == "missing":  # a bucket may be one of several: what it lacks was not seen
        assert compare(tmp_path / "trainer.json", engine)[0] == 5
        assert [w["a"] for w in result["weights"] if w["verdict"] == "not seen"] == [
            "model.layers.1.post_attention_layernorm.weight"
        ]
        return
    assert code == 1
    found = findings(result)
    assert all(FAULTS[fault] in w["a"] or fault in ("groups", "halves") for w in found) and found, found
    assert len(found) == (2 if fault in ("groups", "halves") else 1)
    assert FAULTS[fault] in result["judgement"]["headline"]


def test_what_stands_where_a_weight_should_be(tmp_path):
    model = trainer()
    write(model, tmp_path / "trainer.json")
    for fault, sentence in {
        "heads": "rows 8 to 15 (head 1) are rows 24 to 31 (head 3) of A",
        "halves": "are rows 0 to 95 of model.layers.1.mlp.up_proj.weight of A",
        "other layer": "rows 0 to 63 (heads 0 to 7) are rows 0 to 63 (heads 0 to 7) of model.layers.0.self_attn.q_proj",
        "norm": "are rows 0 to 63 of model.layers.0.input_layernorm.weight of A",
        "words": "row 10 is row 11",
    }.items():
        state = state_of(model)
        _fault(fault, state, state)
        write(engine_state(state), tmp_path / f"{fault}.json")
        found = findings(compare(tmp_path / "trainer.json", tmp_path / f"{fault}.json")[1])
        sentences = " ".join(w["sentence"] for w in found)
        assert sentence.replace("row 10 is row 11", "row 10 are row 11") in sentences, sentences


def test_exchanged_experts(tmp_path):
    model = trainer("experts")
    write(model, tmp_path / "trainer.json")
    state = state_of(model)
    for part in ("gate_up_proj", "down_proj"):
        t = state[f"model.layers.0.mlp.experts.{part}"]
        t[[1, 2]] = t[[2, 1]]
    engine = engine_files(state, tmp_path / "engine", 2, 2)
    code, result = compare(tmp_path / "trainer.json", engine)
    found = findings(result)
    assert code == 1 and len(found) == 6  # gate, up and down of two experts
    assert all("expert 1" in w["role"] or "expert 2" in w["role"] for w in found)
    assert any("[expert 2 gate] of A" in w["sentence"] for w in found if "expert 1" in w["role"]), found[0]


def test_stale_tied_head(tmp_path):
    model = trainer("tied")
    write(model, tmp_path / "trainer.json")
    state = state_of(model)
    state["lm_head.weight"] = state["lm_head.weight"] + 0.001
    write(engine_state(state), tmp_path / "engine.json")
    code, result = compare(tmp_path / "trainer.json", tmp_path / "engine.json")
    assert code == 1 and [w["b"] for w in findings(result)] == ["lm_head.weight"]


def test_history_says_which_step_a_copy_is(tmp_path):
    model = trainer()
    for step in range(3):
        write(model, tmp_path / f"step{step}.json")
        if step == 0:
            stale = state_of(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.01)
    write(engine_state(stale), tmp_path / "engine.json")
    history = [tmp_path / f"step{step}.json" for step in range(2)]
    code, result = compare(tmp_path / "step2.json", tmp_path / "engine.json", "--history", *history)
    assert code == 1
    assert {w["earlier"] for w in findings(result)} == {str(tmp_path / "step0.json")}


def test_other_precision_is_not_equal(tmp_path):
    model = trainer(dtype=torch.float32)
    write(model, tmp_path / "fp32.json")
    write({n: t.bfloat16() for n, t in model.state_dict().items()}, tmp_path / "bf16.json")
    code, result = compare(tmp_path / "fp32.json", tmp_path / "bf16.json")
    assert code == 5 and {w["verdict"] for w in result["weights"]} == {"other precision"}
    write(model, tmp_path / "rounded.json", dtype="bfloat16")
    assert compare(tmp_path / "rounded.json", tmp_path / "bf16.json")[0] == 0


def test_a_missing_rank_is_not_seen(tmp_path):
    model = trainer()
    write(model, tmp_path / "trainer.json")
    engine = engine_files(state_of(model), tmp_path / "engine", 2)
    (engine / "rank1_0.json").unlink()
    code, result = compare(tmp_path / "trainer.json", engine)
    assert code == 5 and findings(result) == []
    assert any(w["seen"] == w["rows"] // 2 for w in result["weights"] if w["verdict"] == "not seen")


def test_copies_that_differ_between_ranks(tmp_path):
    model = trainer()
    write(model, tmp_path / "trainer.json")
    engine = engine_files(state_of(model), tmp_path / "engine", 2)
    state = state_of(model)
    state["model.norm.weight"] += 1
    held = engine_state(state, 1, 2)
    write(held, engine / "rank1_0.json", tensor_parallel=(1, 2), config=CONFIG)
    text = (engine / "rank1_0.json").read_text().replace('"rank": 0', '"rank": 1')
    (engine / "rank1_0.json").write_text(text)
    code, result = compare(tmp_path / "trainer.json", engine)
    assert code == 1 and [w["verdict"] for w in findings(result)] == ["copies differ"]


def test_checkpoints_and_fingerprints_mix(tmp_path):
    model = trainer("bias")
    model.save_pretrained(tmp_path / "checkpoint")
    write(model, tmp_path / "live.json")
    assert compare(tmp_path / "checkpoint", tmp_path / "live.json")[0] == 0
    run(["weights", "fingerprint", str(tmp_path / "checkpoint"), "-o", str(tmp_path / "kept.json")])
    assert compare(tmp_path / "kept.json", tmp_path / "live.json")[0] == 0
    engine = engine_files(state_of(model), tmp_path / "engine", 2)
    assert compare(tmp_path / "checkpoint", engine)[0] == 0


def test_steps_of_a_synchronisation(tmp_path):
    """Buckets get files of their own; a second model takes the place of the first."""
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path.parent)!r})
import torch
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(task="statistics", level="L0", dump_path={str(tmp_path)!r})
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
debugger.fingerprint(model, "before")
pairs = list(model.named_parameters())
debugger.fingerprint(iter(pairs[:2]), "bucket")
debugger.fingerprint(dict(pairs[2:]), "bucket")
state = torch.random.get_rng_state()
debugger.start(model)
model(torch.ones(2, 8))
print(debugger.fingerprint(model, "after").path)
debugger.stop()
assert torch.equal(state, torch.random.get_rng_state())
debugger.step()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("fingerprint/after/step0/rank0.json")
    root = tmp_path / "fingerprint"
    assert sorted(p.name for p in (root / "bucket" / "step0").iterdir()) == ["rank0.json", "rank0_1.json"]
    for moment in ("bucket", "after"):
        assert compare(root / "before" / "step0", root / moment / "step0")[0] == 0
    dump = json.loads((tmp_path / "step0" / "rank" / "dump.json").read_text())
    assert all(name.startswith("Module") for name in dump["data"]), list(dump["data"])


def test_damaged_files_are_refused(tmp_path):
    write(trainer(), tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    for old, new in {
        '"row": 0': '"row": 99999999',
        '"version": 1': '"version": 9',
        '"columns": 64': '"columns": 65',
    }.items():
        (tmp_path / "b.json").write_text(text.replace(old, new))
        done = run(["weights", "compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")], check=False)
        assert done.returncode == 3 and "b.json" in done.stderr, done.stderr


def test_it_says_that_it_could_not(caplog):
    assert PrecisionDebugger.fingerprint({"a.weight": "no tensor"}, path="/nowhere/a.json") is None


class ColumnParallelLinear(torch.nn.Module):
    """What an engine's layers tell of themselves, under the names that they have there."""

    def __init__(self, weight, rank, size, copies=1):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.tp_rank, self.tp_size, self.num_kv_head_replicas = rank, size, copies


class QKVParallelLinear(ColumnParallelLinear):
    pass


class RowParallelLinear(ColumnParallelLinear):
    pass


def test_layers_of_an_engine_say_how_they_are_cut(tmp_path):
    model = trainer()
    write(model, tmp_path / "trainer.json")
    (tmp_path / "engine").mkdir()
    for rank in range(8):
        held = engine_state(state_of(model), rank, 8, padded=128)
        engine = torch.nn.Module()
        engine.config = model.config
        for name, t in held.items():
            *path, last = name.split(".")
            module = engine
            for word in path[:-1]:
                if not hasattr(module, word):
                    module.add_module(word, torch.nn.Module())
                module = getattr(module, word)
            kinds = {"qkv_proj": QKVParallelLinear, "o_proj": RowParallelLinear, "down_proj": RowParallelLinear}
            cut = {
                "gate_up_proj": ColumnParallelLinear,
                "embed_tokens": ColumnParallelLinear,
                "lm_head": ColumnParallelLinear,
            }
            made = {**kinds, **cut}.get(path[-1])
            if made is None:
                layer = torch.nn.Module()
                layer.register_parameter(last, torch.nn.Parameter(t, requires_grad=False))
            else:
                layer = made(t, rank, 8, copies=8 // SIZES["num_key_value_heads"])
            module.add_module(path[-1], layer)
        write(engine, tmp_path / "engine" / f"rank{rank}.json")
    code, result = compare(tmp_path / "trainer.json", tmp_path / "engine")
    assert code == 0 and result["undecided"] == 0, findings(result)


def test_fused_shards_of_unknown_heads_are_not_judged(tmp_path):
    model = trainer()
    write(model, tmp_path / "trainer.json")
    (tmp_path / "engine").mkdir()
    for rank in range(2):
        held = engine_state(state_of(model), rank, 2)
        write(held, tmp_path / "engine" / f"rank{rank}.json", tensor_parallel=(rank, 2))
    code, result = compare(tmp_path / "trainer.json", tmp_path / "engine")
    assert code == 5 and {w["verdict"] for w in findings(result)} == {"cannot say"}
    assert all("qkv_proj" in w["b"] or w["b"] == "" for w in findings(result))


SHARDED = """
import sys, torch, torch.distributed as dist
sys.path.insert(0, sys.argv[2])
from engine_weights import trainer
from msprobe.pytorch import PrecisionDebugger
dist.init_process_group("gloo")
model = trainer(dtype=torch.float32)
kind = sys.argv[1]
if kind == "fsdp2":
    from torch.distributed.fsdp import fully_shard
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
elif kind == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({type(model.model.layers[0])}), use_orig_params=sys.argv[4] == "1",
                 device_id=torch.device("cpu"))
elif kind == "columns":
    from torch.distributed.tensor import Shard, distribute_tensor
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2,))
    for layer in model.model.layers:
        for linear in (layer.self_attn.o_proj, layer.mlp.down_proj):
            linear.weight = torch.nn.Parameter(distribute_tensor(linear.weight.data, mesh, [Shard(1)]))
else:
    model = torch.nn.parallel.DistributedDataParallel(model)
assert PrecisionDebugger.fingerprint(model, path=f"{sys.argv[3]}/rank{dist.get_rank()}.json")
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind, original", [("fsdp2", 0), ("fsdp1", 0), ("fsdp1", 1), ("columns", 0), ("ddp", 0)])
def test_shards_of_torch_itself(kind, original, tmp_path):
    """FSDP of both versions, DTensor and DDP: both ranks together are the whole model, and nothing is gathered."""
    (tmp_path / "sharded").mkdir()
    (tmp_path / "program.py").write_text(SHARDED)
    here = Path(__file__).parent
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [tmp_path / "program.py", kind, here, tmp_path / "sharded", original]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    write(trainer(dtype=torch.float32), tmp_path / "whole.json")
    code, result = compare(tmp_path / "whole.json", tmp_path / "sharded")
    assert code == 0 and result["equal"] == len(result["weights"]) == 21, findings(result)
    if kind != "ddp":
        assert compare(tmp_path / "whole.json", tmp_path / "sharded" / "rank1.json")[0] == 5


def exact(a, b, *options):
    done = run(["ckpt", "compare", str(a), str(b), "--json", *options], check=False)
    return done.returncode, json.loads(done.stdout)


def test_a_copy_of_files_has_no_round_off(tmp_path):
    model = trainer()
    model.save_pretrained(tmp_path / "a")
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight.view(torch.int16)[4, 9] += 1  # one unit in the last place
    model.save_pretrained(tmp_path / "b")
    assert exact(tmp_path / "a", tmp_path / "b")[0] == 0
    code, result = exact(tmp_path / "a", tmp_path / "b", "--exact")
    assert code == 1 and result["different"] == 1
    name = "model.layers.0.mlp.up_proj.weight"
    assert [w["a"] for w in result["weights"] if w["verdict"] == "differs"] == [name]
    assert result["judgement"]["headline"].startswith(f"bug: {name}") and "[4, 9]" in result["judgement"]["headline"]
    assert exact(tmp_path / "a", tmp_path / "a", "--exact")[0] == 0
    model.float().save_pretrained(tmp_path / "c")
    assert exact(tmp_path / "b", tmp_path / "c")[0] == 0
    assert exact(tmp_path / "b", tmp_path / "c", "--exact")[0] == 1


def test_files_find_the_configuration_beside_them(tmp_path):
    model = trainer()
    model.save_pretrained(tmp_path / "trainer")
    (tmp_path / "engine").mkdir()
    save_file(engine_state(state_of(model)), tmp_path / "engine" / "model.safetensors")
    (tmp_path / "engine" / "config.json").write_text((tmp_path / "trainer" / "config.json").read_text())
    for side in ("trainer/model.safetensors", "trainer"):
        code, result = exact(tmp_path / side, tmp_path / "engine" / "model.safetensors", "--exact")
        assert code == 0 and result["only_a"] == result["only_b"] == [] and len(result["weights"]) == 21

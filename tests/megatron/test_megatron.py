"""Layouts of megatron-core: the same run twice has no difference, nor each against one rank or another, planted faults are named.

All run in the environment of megatron-core; tests/megatron/gpt.py has the model, faults.py the faults.
"""

import json
import sqlite3

import pytest
from graph_cases import run
from layouts import ONE, PAIRS, PP2, TP2, TP2PP2, assert_silent, has_rank, named, refusal, train, visualize

pytestmark = pytest.mark.deep


ALONE = {"bf16": "bf16=1", "bf16_tp2pp2": "bf16=1,tp=2,pp=2", "recompute": "tp=2,recompute=full", "one": ""}
FAULTS = {  # the path of the module that is to be named
    "qkv_rank1": "layers.2.self_attention.linear_qkv",
    "fc1_all": "layers.1.mlp.linear_fc1",
    "proj_rank0": "layers.3.self_attention.linear_proj",
    "norm_weight": "layers.2.input_layernorm",
    "norm_rank1": "layers.1.pre_mlp_layernorm",
    "eps": "layers.1.input_layernorm",
    "rotary_base": "rotary_pos_emb",
    "rotary_slight": "rotary_pos_emb",
    "scale": "layers.2.self_attention.core_attention",
    "no_reduction": "layers.1.mlp.linear_fc2",
    "doubled_reduction": "layers.2.self_attention.linear_proj",
    "nan_rank1": "layers.3.mlp.linear_fc2",
    "fc2_output": "layers.2.mlp.linear_fc2",
    "gradient": "layers.1.self_attention.linear_proj",
    "gradient_rank1": "layers.2.mlp.linear_fc1",
    "key_bias": "layers.3.self_attention.linear_qkv",
    "gate_rank0": "layers.0.mlp.linear_fc1",
    "mask": "layers.1.self_attention.core_attention",
    "heads_rank0": "layers.2.self_attention.linear_qkv",
    "gelu": "layers.2.mlp",
    "wrong_group": "layers.2.self_attention.linear_proj",
    "no_backward_reduction": "layers.1.mlp.linear_fc1",
    "embedding_rank1": "word_embeddings",
    "output_rank0": "output_layer",
    "slight_rank1": "layers.2.mlp.linear_fc1",
    "final_norm": "final_layernorm",
}


@pytest.mark.parametrize("level", ["mix", "L0"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_layout_against_one_rank(megatron_python, tmp_path, name, level):
    pair = PAIRS[name]
    train(megatron_python, tmp_path, ("target", pair.layout, "--level", level), ("golden", pair.one, "--level", level))
    losses = [json.loads((tmp_path / side / "losses.json").read_text())[0] for side in ("target", "golden")]
    assert losses[0]["gradient norm"] == pytest.approx(losses[1]["gradient norm"], rel=1e-5)
    summary = visualize(tmp_path / "target", tmp_path / "golden", pair.merge, tmp_path)
    assert_silent(summary, name)


@pytest.mark.parametrize("level", ["mix", "L0"])
def test_one_rank_against_layouts(megatron_python, tmp_path, level):
    """What stands for each other by its order alone is no difference, whichever run is the golden one."""
    names = ("tp2", "pp2", "tp2pp2", "tp2sp")
    runs = ((name, PAIRS[name].layout, "--level", level) for name in names)
    train(megatron_python, tmp_path, ("one", "", "--level", level), *runs)
    for name in names:
        assert_silent(visualize(tmp_path / "one", tmp_path / name, ONE, tmp_path, PAIRS[name].merge), name)


def test_tensors_of_a_layout_against_one_rank(megatron_python, tmp_path):
    train(megatron_python, tmp_path, ("target", "tp=2,pp=2", "--task", "tensor"), ("golden", "", "--task", "tensor"))
    assert_silent(visualize(tmp_path / "target", tmp_path / "golden", TP2PP2, tmp_path), "tp2pp2")


@pytest.mark.parametrize("size", ["", ",layers=8,hidden=128,ffn=192,seq=32,vocab=256,heads=8,groups=4"])
def test_halves_of_a_layout_against_one_rank(megatron_python, tmp_path, size):
    """Each split sum is rounded in another order; that explains all, in deeper models too."""
    names = ["tp2", "pp2", "tp2pp2", "tp2sp", "distributed_optimizer", "tied"]
    one = {name: PAIRS[name].one for name in names}
    runs = [(name, f"{PAIRS[name].layout},bf16=1{size}") for name in names]
    goldens = {text: f"one{i}" for i, text in enumerate(sorted(set(one.values())))}
    runs += [(name, f"{text or 'tp=1'},bf16=1{size}") for text, name in goldens.items()]
    train(megatron_python, tmp_path, *runs)
    for name in names:
        summary = visualize(tmp_path / name, tmp_path / goldens[one[name]], PAIRS[name].merge, tmp_path)
        assert_silent(summary, name)
        assert summary["verdict"]["text"]["en"][0].startswith("No difference"), name


def test_experts_of_a_tensor_parallel_size_of_their_own(megatron_python, tmp_path):
    experts = "experts=4,groups=4,dispatcher=allgather"
    sides = (f"tp=4,sp=1,ep=2,etp=2,{experts}", f"custom_norm=1,{experts}")
    assert "each expert lies in 2 parts" in refusal(megatron_python, tmp_path, "L0", *sides, ("4", "4", "1", "2"))


BETWEEN = {"tp2": TP2, "pp2": PP2, "tp2pp2": TP2PP2, "tp2sp": TP2}


def test_how_a_parameter_is_split_is_read_from_its_attributes(megatron_python, tmp_path):
    train(megatron_python, tmp_path, ("target", "tp=2"))
    options = ["--rank_size", "2", "--tp", "2", "--pp", "1"]
    command = ["graph_visualize", "-tp", tmp_path / "target" / "step0", "-o", tmp_path, "--json", *options]
    summary = json.loads(run(command).stdout)
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    try:
        rows = db.execute("select node_name, parallel_merge_info from tb_nodes where node_type = 0").fetchall()
    finally:
        db.close()
    for layer in ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2", "output_layer"):
        dim = 1 if layer in ("linear_proj", "linear_fc2") else 0
        calls = [(name, info) for name, info in rows if f".{layer}." in name and ".forward." in name]
        assert calls
        for name, info in calls:
            assert f"parameters.weight: split along dim {dim}, by tensor_model_parallel" in info, name


@pytest.mark.parametrize("bf16", ["", ",bf16=1"])
@pytest.mark.parametrize("level", ["mix", "L0", "L1"])
def test_two_layouts(megatron_python, tmp_path, level, bf16):
    options = ("--level", level)
    train(megatron_python, tmp_path, *((name, PAIRS[name].layout + bf16, *options) for name in BETWEEN))
    for target, merge in BETWEEN.items():
        for golden, golden_merge in BETWEEN.items():
            if golden != target:
                assert_silent(
                    visualize(tmp_path / target, tmp_path / golden, merge, tmp_path, golden_merge), f"{target}-{golden}"
                )


WAYS = {
    "mix": ("--level", "mix"),
    "L0": ("--level", "L0"),
    "L1": ("--level", "L1"),
    "md5": ("--task", "md5"),
    "tensor": ("--task", "tensor"),
}


@pytest.mark.parametrize("name", [*PAIRS, *ALONE])
def test_the_same_run_twice(megatron_python, tmp_path, name):
    layout = PAIRS[name].layout if name in PAIRS else ALONE[name]
    memory = ("large", "none" if "experts" in layout else "nan")  # deterministic algorithms of experts are other ops
    runs = []
    for way, options in WAYS.items():
        for side, filled in zip(("target", "golden"), memory):
            more = [] if filled == "none" else ["--memory", filled]
            runs.append((f"{way}_{side}", layout, *options, *more))
    train(megatron_python, tmp_path, *runs, ("bare", layout, "--level", "none"))
    for way in WAYS:
        target, golden = tmp_path / f"{way}_target", tmp_path / f"{way}_golden"
        report = json.loads(
            run(["compare", "-tp", target / "step0", "-gp", golden / "step0", "-o", tmp_path, "--json"]).stdout
        )
        assert report["verdict"]["text"]["en"][0].startswith("No difference: all "), way
        assert report["verdict"]["ops"]["suspicious"] == report["verdict"]["ops"]["bug"] == 0
        for side in (target, golden):
            found = json.loads(run(["overflow_check", "-i", side / "step0", "-o", tmp_path, "--json"]).stdout)
            assert found["first"] == [], way
            for bits in (tmp_path / "bare").glob("bits*.json"):
                assert (side / bits.name).read_text() == bits.read_text(), way


def test_an_expert_over_tensor_parallel_ranks(megatron_python, tmp_path):
    pair = PAIRS["ep2_over_tp2"]
    train(megatron_python, tmp_path, ("golden", pair.one), ("target", pair.layout, "--fault", "expert_rank1"))
    origins = visualize(tmp_path / "target", tmp_path / "golden", pair.merge, tmp_path)["verdict"]["origins"]
    assert named(origins, "layers.1.mlp.experts.local_experts.3.linear_fc2")


def test_heads_that_are_grouped_otherwise(megatron_python, tmp_path):
    heads = "heads=8,groups=4"
    regrouped = ("target", f"tp=2,{heads}", "--fault", "regrouped")
    train(megatron_python, tmp_path, ("golden", heads), ("same", f"tp=2,{heads}"), regrouped)
    merged = visualize(tmp_path / "target", tmp_path / "golden", TP2, tmp_path)["verdict"]["origins"]
    assert named(merged, "layers.2.self_attention")
    command = ["compare", "-tp", tmp_path / "target" / "step0", "-gp", tmp_path / "same" / "step0", "-o", tmp_path]
    assert named(json.loads(run([*command, "--json"]).stdout)["verdict"]["origins"], "layers.2.self_attention")


def test_the_second_of_two_wrong_weights_is_told(megatron_python, tmp_path):
    train(megatron_python, tmp_path, ("golden", ""), ("target", "tp=2", "--fault", "two_weights"))
    text = visualize(tmp_path / "target", tmp_path / "golden", TP2, tmp_path)["verdict"]["text"]["en"]
    assert "layers.1.input_layernorm.weight" in text[0]
    assert any(line.startswith("also: ") and "layers.3.mlp.linear_fc1.weight" in line for line in text)


@pytest.mark.parametrize("golden", ["one", "tp2sp", "pp2"])
@pytest.mark.parametrize("bf16", ["", ",bf16=1"])
def test_planted_faults_against_another_layout(megatron_python, tmp_path, bf16, golden):
    pair = PAIRS["tp2pp2"]
    against = {"one": ("tp=1", ONE), **{name: (PAIRS[name].layout, BETWEEN[name]) for name in BETWEEN}}
    layout, merge = against[golden]
    faults = ((name, pair.layout + bf16, "--fault", name) for name in FAULTS)
    train(megatron_python, tmp_path, ("golden", layout + bf16), *faults)
    wrong = []
    for name, path in FAULTS.items():
        if bf16 and name == "heads_rank0":
            path = "layers.2.self_attention"  # rounding hides it up to the rotation
        merged = visualize(tmp_path / name, tmp_path / "golden", pair.merge, tmp_path, merge)["verdict"]["origins"]
        if not (named(merged, path) and has_rank(merged[0], name)):
            wrong.append((name, merged[:1]))
    assert wrong == []


@pytest.mark.parametrize("layout", ["tp2", "tp2pp2"])
def test_planted_faults(megatron_python, tmp_path, layout):
    pair = PAIRS[layout]
    train(
        megatron_python,
        tmp_path,
        ("one", ""),
        ("same", pair.layout),
        *((name, pair.layout, "--fault", name) for name in FAULTS),
    )
    wrong = []
    for name, path in FAULTS.items():
        merged = visualize(tmp_path / name, tmp_path / "one", pair.merge, tmp_path)["verdict"]["origins"]
        if not (named(merged, path) and has_rank(merged[0], name)):
            wrong.append((name, "merged", merged[:1]))
        command = ["compare", "-tp", tmp_path / name / "step0", "-gp", tmp_path / "same" / "step0", "-o", tmp_path]
        own = json.loads(run([*command, "--json"]).stdout)["verdict"]["origins"]
        part = path.split(".", 2)[-1]  # stages count their layers from 0
        ranks = set(own[0]["ranks"]) if own else set()
        one = {rank % 2 for rank in ranks}
        right_ranks = one == {int(name[-1])} if "_rank" in name else len(ranks) == 2
        if not (named(own, part) and right_ranks):
            wrong.append((name, "same layout", own[:1]))
    assert wrong == []


def test_modules_of_stages_lead_with_the_one_that_gives(megatron_python, tmp_path):
    layout = ("pp=2,vpp=2", "--level", "L0")
    train(megatron_python, tmp_path, ("golden", *layout), ("target", *layout, "--fault", "residual"))
    command = ["compare", "-tp", tmp_path / "target" / "step0", "-gp", tmp_path / "golden" / "step0", "-o", tmp_path]
    verdict = json.loads(run([*command, "--json"]).stdout)["verdict"]
    (origin,) = verdict["origins"]
    assert origin["ranks"] == [0]
    assert "1.module.decoder.layers.0.pre_cross_attn_layernorm" in origin["op"]
    assert [reached["rank"] for reached in verdict["reached"]] == [1]


def test_copies_part_where_their_gradient_is_not_reduced(megatron_python, tmp_path):
    layout = ("tp=2,sp=1", "--level", "L0", "--steps", "2")
    train(megatron_python, tmp_path, ("golden", *layout), ("target", *layout, "--fault", "norm_apart"))
    for golden, found in (("golden", True), ("target", False)):
        command = ["compare", "-tp", tmp_path / "target", "-gp", tmp_path / golden, "-o", tmp_path / golden, "--json"]
        origins = json.loads(run(command).stdout)["verdict"]["origins"]
        assert bool(origins) == found
    command[4] = tmp_path / "golden"
    origin = json.loads(run(command).stdout)["verdict"]["origins"][0]
    assert origin["module"] == "module.decoder.layers.1.input_layernorm"
    assert (origin["step"], origin["parameter"], origin["copies"]) == (1, "weight", [0, 1])


def test_what_a_mask_puts_in_on_one_rank(megatron_python, tmp_path):
    train(megatron_python, tmp_path, ("golden", ""), ("target", "tp=2", "--fault", "infinite_rank1"))
    origin = visualize(tmp_path / "target", tmp_path / "golden", TP2, tmp_path)["verdict"]["origins"][0]
    # Fills that mean minus infinity are one value: the softmax of a row of them is where the runs part.
    assert origin["module"].endswith("layers.1.self_attention.core_attention.scale_mask_softmax")
    assert origin["ranks"] == [1]

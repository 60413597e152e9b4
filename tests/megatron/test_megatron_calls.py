"""Layouts of megatron-core at level L1, where no modules say what belongs together: each against one rank, planted faults are named."""

import sqlite3
from itertools import product

import pytest
from layouts import ONE, PAIRS, PP2, TP2, TP2PP2, Pair, assert_silent, has_rank, refusal, train, visualize

pytestmark = pytest.mark.deep
EXPERTS = ("ep2", "ep2_mean", "ep2_over_tp2", "ep2_over_tp2dp2", "etp2", "experts_pp2")
EP2, EP2_ONE = PAIRS["ep2"].merge, PAIRS["ep2"].one
CALLS = {
    **{
        name: PAIRS[name]
        for name in ("tp2", "pp2", "tp2pp2", "tp2sp", "vpp2", "distributed_optimizer", "overlap", "uneven")
    },
    "qk_norm": PAIRS["qk_norm"],
    "recompute": Pair("tp=2,recompute=full", TP2),
    "bf16": Pair("tp=2,pp=2,bf16=1", TP2PP2, "bf16=1"),
    "pp4": Pair("pp=4,micro_batches=4", ("4", "1", "4"), "micro_batches=4"),
    **{name: PAIRS[name] for name in EXPERTS},
    **{name: PAIRS[name] for name in ("tied", "gpt_pp2", "gpt_tp2pp2")},
    "ep4": Pair(
        "experts=4,ep=4,dp=4,per_token=1", ("4", "1", "1", "--ep", "4", "1"), "experts=4,batches=4,per_token=1"
    ),
    "ep2_bf16": Pair("experts=4,ep=2,dp=2,per_token=1,bf16=1", EP2, f"{EP2_ONE},bf16=1"),
    "ep2_gather": Pair("experts=4,ep=2,dp=2,per_token=1,dispatcher=allgather", EP2, f"{EP2_ONE},dispatcher=allgather"),
    "ep2_pp2": Pair("experts=4,ep=2,dp=2,pp=2,per_token=1", ("4", "1", "2", "--ep", "2", "1"), EP2_ONE),
    "tied_pp2": Pair("pp=2,tied=1", PP2, "tied=1"),
    "pp2_more_micro_batches": Pair("pp=2,micro_batches=4", PP2, "micro_batches=4"),
}
ALL_CALLS = ("Module.all_calls.Calls.forward.0", "Module.all_calls.Calls.backward.0")


def calls_without_partner(summary):
    """Of the golden run's model; what communicates is of its layout."""
    db = sqlite3.connect(f"file:{summary['file']}?immutable=1", uri=True)
    try:
        query = (
            "select node_name, matched_node_link, up_node from tb_nodes where node_type = 1 and data_source = 'Bench'"
        )
        rows = db.execute(query).fetchall()
    finally:
        db.close()
    calls = [(name, link) for name, link, up in rows if up in ALL_CALLS and not name.startswith("Distributed.")]
    assert calls
    return [name for name, link in calls if link in ("[]", "", None)]


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_layout_against_one_rank(megatron_python, tmp_path, name):
    """Level L1, where no modules say what belongs together."""
    pair = CALLS[name]
    options = ("--level", "L1")
    train(megatron_python, tmp_path, ("target", pair.layout, *options), ("golden", pair.one, *options))
    summary = visualize(tmp_path / "target", tmp_path / "golden", pair.merge, tmp_path)
    assert_silent(summary, name)
    own = ("Tensor.__eq__.", "Torch.all.") if "sp=1" in pair.layout else ()  # there it checks less, and otherwise
    if "batches=" in pair.one:
        own += ("Tensor.__setitem__.",)  # the mask of each batch
    assert [call for call in calls_without_partner(summary) if not call.startswith(own)] == []
    if name in ("tp2", "pp2", "tp2pp2", "tp2sp", "tied_pp2"):
        assert_silent(visualize(tmp_path / "golden", tmp_path / "target", ONE, tmp_path, pair.merge), name)


TWO = {  # layouts of experts, and those of the same training
    "ep4": (CALLS["ep4"], Pair("experts=4,ep=2,dp=2,batches=2,per_token=1", EP2)),
    "tp2": (PAIRS["ep2_over_tp2dp2"], Pair("experts=4,ep=2,dp=2,per_token=1,custom_norm=1", EP2)),
    "gather": (CALLS["ep2_gather"], PAIRS["ep2"]),
    "pp2": (CALLS["ep2_pp2"], PAIRS["ep2"]),
}


@pytest.mark.parametrize(("name", "level"), [*product(TWO, ["L1"]), ("ep4", "mix"), ("tp2", "mix"), ("pp2", "mix")])
def test_two_layouts_with_experts(megatron_python, tmp_path, name, level):
    sides = dict(zip(("a", "b"), TWO[name]))
    train(megatron_python, tmp_path, *((side, pair.layout, "--level", level) for side, pair in sides.items()))
    for target, golden in (("a", "b"), ("b", "a")):
        ours, theirs = (sides[side].merge for side in (target, golden))
        merge = (*ours[:3], "--ep", ours[4], theirs[4])
        assert_silent(visualize(tmp_path / target, tmp_path / golden, merge, tmp_path, theirs[:3]), name)


def test_parts_of_experts_need_modules_where_all_tokens_are_gathered(megatron_python, tmp_path):
    experts = "experts=4,dispatcher=allgather,per_token=1"
    sides = (f"tp=2,sp=1,ep=2,etp=2,dp=2,{experts}", f"batches=2,custom_norm=1,{experts}")
    assert "dump again at level L0 or mix" in refusal(megatron_python, tmp_path, "L1", *sides, ("4", "2", "1", "2"))


CALLS_OF_FAULTS = {  # the calls that show it first, by what they are
    "qkv_rank1": "Tensor.t_rank2.0",
    "fc1_all": "Tensor.t.6",
    "proj_rank0": "Tensor.t_rank2.5",
    "norm_weight": "Torch.matmul_rank2.0",
    "norm_rank1": "Torch.matmul.6",
    "eps": "Torch.matmul.4",
    "rotary_base": "Torch.outer.0",
    "scale": "Functional.softmax_rank2.0",
    "no_reduction": "Tensor.__add__.12",
    "doubled_reduction": "Functional.dropout_rank2.1",
    "nan_rank1": "Tensor.t_rank2.7",
    "fc2_output": "Functional.dropout_rank2.2",
    "gradient": "Tensor.matmul.4",
    "gradient_rank1": "Tensor.matmul_rank2.12",
    "key_bias": "Tensor.__add___rank2.7",
    "gate_rank0": "Tensor.t.2",
    "mask": "Functional.softmax.1",
    "gelu": "Tensor.__mul___rank2.8",
    "wrong_group": "Tensor.__add___rank2.4",
    "no_backward_reduction": "Tensor.matmul.2",
    "output_rank0": "Tensor.t_rank2.8",
    "final_norm": "Torch.matmul_rank2.8",
}


def test_planted_faults_at_calls(megatron_python, tmp_path):
    pair = PAIRS["tp2pp2"]
    options = ("--level", "L1")
    faults = ((name, pair.layout, *options, "--fault", name) for name in CALLS_OF_FAULTS)
    train(megatron_python, tmp_path, ("golden", "", *options), *faults)
    wrong = []
    for name, call in CALLS_OF_FAULTS.items():
        origins = visualize(tmp_path / name, tmp_path / "golden", pair.merge, tmp_path)["verdict"]["origins"]
        if not (origins and origins[0]["op"].startswith(f"{call}.") and has_rank(origins[0], name)):
            wrong.append((name, origins[:1]))
    assert wrong == []


EXPERT_FAULTS = {  # the call and the ranks that it is of; without ranks what all have, or where no part is proved to be it
    "second_expert_rank1": ("Tensor.t_rank1.13", [1]),
    "first_expert_rank0": ("Tensor.t.17", [0]),
    "expert_all": ("Tensor.t.17", [0]),
    "router_rank1": ("Functional.dropout.6", []),
    "router_all": ("Functional.dropout.9", []),
    "one_expert": ("Functional.dropout.6", []),
    "doubled_weights_rank1": ("Tensor.__mul___rank1.34", [1]),
    "gradient": ("Tensor.matmul.34", []),
    "norm_weight": ("Torch.matmul.12", []),
    "eps": ("Torch.matmul.6", []),
}


def test_planted_faults_at_calls_of_experts(megatron_python, tmp_path):
    options = ("--level", "L1")
    faults = ((name, PAIRS["ep2"].layout, *options, "--fault", name) for name in EXPERT_FAULTS)
    train(megatron_python, tmp_path, ("golden", EP2_ONE, *options), *faults)
    wrong = []
    for name, (call, ranks) in EXPERT_FAULTS.items():
        origins = visualize(tmp_path / name, tmp_path / "golden", EP2, tmp_path)["verdict"]["origins"]
        if not (origins and origins[0]["op"].startswith(f"{call}.") and origins[0]["ranks"] == ranks):
            wrong.append((name, origins[:1]))
    assert wrong == []


def test_gradients_that_replicas_keep_show_at_the_next_step(megatron_python, tmp_path):
    options = ("--level", "L1", "--steps", "2")
    target = ("target", PAIRS["ep2"].layout, *options, "--fault", "not_combined")
    train(megatron_python, tmp_path, ("golden", EP2_ONE, *options), target)
    origins = visualize(tmp_path / "target", tmp_path / "golden", EP2, tmp_path, step=1)["verdict"]["origins"]
    assert origins[0]["op"].startswith("Functional.embedding.0.")

"""msprobe ckpt compare on layouts of Megatron beyond the common one, and of bf16 weights beside fp32 partitions."""

import itertools
import json
import os
import subprocess

import torch
from checkpoint_savers import HIDDEN, LAYERS, llama, save_distributed, save_megatron, save_safetensors, save_zero
from graph_cases import run
from megatron_savers import mixture, save_centred_norms, save_distributed_optimizer, save_experts, save_older_names


def compare(a, b, *options, code=0):
    done = run(["ckpt", "compare", a, b, "--json", *options], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


def assert_equal(result, elements):
    assert {w["verdict"] for w in result["weights"]} == {"bit-equal"}
    assert result["only_a"] == result["only_b"] == result["copies_that_differ"] == []
    assert sum(w["elements"] for w in result["weights"]) == elements


def test_experts_on_ranks_of_their_own(tmp_path):
    state = mixture()
    save_safetensors(state, tmp_path / "hf")
    save_distributed(state, tmp_path / "dcp")
    for tp, pp, ep in ((1, 1, 2), (2, 1, 4), (2, 2, 2), (1, 2, 1)):
        save_experts(state, tmp_path / f"tp{tp}pp{pp}ep{ep}", tp, pp, ep)
    elements = sum(t.numel() for t in state.values())
    for a, b in itertools.combinations(sorted(tmp_path.iterdir()), 2):
        assert_equal(compare(a, b), elements)
    # The third expert is the first of the second rank; row 50 of its fc1 is in "up".
    file = tmp_path / "tp1pp1ep2" / "iter_0000010" / "mp_rank_00_001" / "model_optim_rng.pt"
    saved = torch.load(file, weights_only=False)
    saved["model"]["decoder.layers.3.mlp.experts.local_experts.0.linear_fc1.weight"].view(torch.int32)[50, 3] ^= 1
    torch.save(saved, file)
    for other in ("hf", "tp2pp2ep2"):
        (found,) = [
            w for w in compare(tmp_path / other, tmp_path / "tp1pp1ep2")["weights"] if w["verdict"] != "bit-equal"
        ]
        assert found["b"].split("[")[0] == "decoder.layers.3.mlp.experts.local_experts.2.linear_fc1.weight"
        assert (found["first"]["index_b"], found["first"]["part"]) == ([50, 3], "up")
        assert "mp_rank_00_001" in found["first"]["file_b"]
    # A copy of what is no expert differs on one rank.
    saved["model"]["decoder.layers.3.mlp.experts.local_experts.0.linear_fc1.weight"].view(torch.int32)[50, 3] ^= 1
    saved["model"]["decoder.layers.1.mlp.router.weight"][0, 0] += 1
    torch.save(saved, file)
    result = compare(tmp_path / "hf", tmp_path / "tp1pp1ep2", code=1)
    assert result["different"] == 0 and "layers.1.mlp.router.weight" in result["copies_that_differ"][0]


def test_older_names_and_norms_centred_on_zero(tmp_path):
    state = llama()
    save_safetensors(state, tmp_path / "hf")
    save_megatron(state, tmp_path / "new")
    save_older_names(state, tmp_path / "older")
    elements = sum(t.numel() for t in state.values())
    assert_equal(compare(tmp_path / "hf", tmp_path / "older"), elements)
    assert_equal(compare(tmp_path / "older", tmp_path / "new"), elements)
    save_centred_norms(state, tmp_path / "centred")
    for other in ("hf", "new", "older"):
        result = compare(tmp_path / other, tmp_path / "centred")
        assert result["only_a"] == result["only_b"] == []
        for weight in result["weights"]:
            # t - 1 + 1 is t but for a rounding.
            norm = "norm" in weight["a"]
            assert weight["verdict"] in (("bit-equal", "equal", "round-off") if norm else ("bit-equal",)), weight["a"]
            assert ("1 added to B" in weight["note"]) == norm


def test_a_layer_of_multi_token_prediction(tmp_path):
    """Megatron counts it apart on the last stage; Hugging Face has it as the layer behind the others."""
    state, made = llama(), llama(7)
    hf = {**state, **{n.replace("layers.0.", f"layers.{LAYERS}."): t for n, t in made.items() if ".layers.0." in n}}
    rng = torch.Generator().manual_seed(1)
    own = {name: 1 + 0.1 * torch.randn(HIDDEN, generator=rng) for name in ("enorm", "hnorm", "shared_head.norm")}
    own["eh_proj"] = torch.randn(HIDDEN, 2 * HIDDEN, generator=rng)
    hf.update({f"model.layers.{LAYERS}.{name}.weight": t for name, t in own.items()})
    save_safetensors(hf, tmp_path / "hf")
    for name, layout in (("pp2", (2, 2, 1)), ("tp1", (1, 1, 1)), ("vpp", (1, 2, 2))):
        save_megatron(state, tmp_path / name, *layout)
        save_megatron(made, tmp_path / f"made_{name}", layout[0], 1, 1)
        for rank in range(layout[0]):
            (source,) = (tmp_path / f"made_{name}").glob(f"*/mp_rank_{rank:02d}/*.pt")
            file = sorted((tmp_path / name).glob(f"*/mp_rank_{rank:02d}*/*.pt"))[-1]
            saved = torch.load(file, weights_only=False)
            model = saved["model" if layout[2] == 1 else "model1"]
            for weight, t in torch.load(source, weights_only=False)["model"].items():
                if weight.startswith("decoder.layers.0."):
                    model[weight.replace("decoder.layers.0.", "mtp.layers.0.transformer_layer.")] = t
            for weight, t in own.items():
                split = t.chunk(layout[0])[rank] if weight == "eh_proj" else t
                model[f"mtp.layers.0.{weight.replace('shared_head.norm', 'final_layernorm')}.weight"] = split.clone()
            torch.save(saved, file)
        assert_equal(compare(tmp_path / "hf", tmp_path / name), sum(t.numel() for t in hf.values()))


def test_partitions_in_fp32_count_and_not_the_weights_in_bf16(tmp_path):
    state = llama()
    save_safetensors(state, tmp_path / "hf")
    for stage, ranks in ((2, 3), (3, 3)):
        save_zero(state, tmp_path / f"zero{stage}", stage, ranks)
        assert_equal(compare(tmp_path / "hf", tmp_path / f"zero{stage}"), sum(t.numel() for t in state.values()))
    file = tmp_path / "zero3" / "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    saved = torch.load(file, weights_only=False)
    saved["optimizer_state_dict"]["fp32_flat_groups"][0].view(torch.int32)[5] ^= 1
    torch.save(saved, file)
    (found,) = [w for w in compare(tmp_path / "hf", tmp_path / "zero3")["weights"] if w["verdict"] != "bit-equal"]
    assert found["a"] == "model.embed_tokens.weight" and "zero_pp_rank_1" in found["first"]["file_b"]
    # 96 x 32 elements, a third on each rank: element 1024 + 5.
    assert found["first"]["index_a"] == [32, 5]


def test_a_bf16_copy_is_rounded_and_no_difference(tmp_path):
    save_safetensors(llama(), tmp_path / "fp32")
    save_safetensors({n: t.bfloat16() for n, t in llama().items()}, tmp_path / "bf16")
    result = compare(tmp_path / "fp32", tmp_path / "bf16")
    assert {w["verdict"] for w in result["weights"]} <= {"rounded", "equal"}


def test_states_of_the_distributed_optimizer_are_merged_as_their_weights(tmp_path):
    for name, layout, bucket in (("a", (1, 1, 1), None), ("b", (2, 2, 1), None), ("c", (1, 2, 2), 3000)):
        save_megatron(llama(), tmp_path / name, *layout)
        save_distributed_optimizer(tmp_path / name, bucket)
    for other in "bc":
        result = compare(tmp_path / "a", tmp_path / other, "--optimizer")
        states = {w["a"].split(".")[0] for w in result["weights"]}
        assert states == {"param", "exp_avg", "exp_avg_sq"} and not result["only_a"] and not result["only_b"]
        assert {w["verdict"] for w in result["weights"]} == {"bit-equal"}
    state = mixture()
    for name, layout in (("d", (2, 1, 2)), ("e", (1, 1, 1))):
        save_experts(state, tmp_path / name, *layout)
        save_distributed_optimizer(tmp_path / name, experts_apart=name == "d")
    assert {w["verdict"] for w in compare(tmp_path / "d", tmp_path / "e", "--optimizer")["weights"]} == {"bit-equal"}
    # One moment of one rank, and the weight that it belongs to.
    file = tmp_path / "b" / "iter_0000005" / "mp_rank_01_001" / "distrib_optim.pt"
    saved = torch.load(file, weights_only=False)
    (buffer,) = saved[0].values()
    buffer["exp_avg"].view(torch.int32)[64] ^= 1 << 22  # behind the first weight, which lies last in the model
    torch.save(saved, file)
    result = compare(tmp_path / "a", tmp_path / "b", "--optimizer", code=1)
    (found,) = [w for w in result["weights"] if w["verdict"] != "bit-equal"]
    assert found["a"] == "exp_avg.output_layer.weight" and "mp_rank_01_001" in found["first"]["file_b"]
    # Weights in another order are not guessed at.
    buffer["param"] = buffer["param"].flip(0)
    torch.save(saved, file)
    shown = json.loads(run(["ckpt", "show", tmp_path / "b", "--json"]).stdout)
    assert not [t for t in shown["optimizer"] if t["name"].startswith("exp_avg.")]
    assert "3 of 4 files hold the weights" in shown["notes"][0]


def test_similarity_of_ranks_is_that_of_mindstudio_probe(tmp_path, old_python):
    """Our command on checkpoints of ranks against theirs, and theirs reads no other format."""
    for seed, name in ((0, "a"), (1, "b")):
        save_megatron(llama(seed), tmp_path / name)
        save_experts(mixture(seed), tmp_path / f"experts_{name}", tp=2, pp=1, ep=2)
    (tmp_path / "stub" / "megatron").mkdir(parents=True)
    (tmp_path / "stub" / "megatron" / "__init__.py").touch()
    for name in ("", "experts_"):
        sides = [tmp_path / f"{name}a", tmp_path / f"{name}b"]
        run(["config_check", "-c", *sides, "-o", tmp_path / f"{name}ours.json"])
        done = subprocess.run(
            [old_python.parent / "msprobe", "config_check", "-c", *sides, "-o", tmp_path / f"{name}theirs.json"],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "stub")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        ours, theirs = (json.loads((tmp_path / f"{name}{who}.json").read_text()) for who in ("ours", "theirs"))
        # Transformer Engine's norm of the feed-forward network: docs/compatibility.md.
        theirs = {
            n.replace("mlp.linear_fc1.layer_norm_weight", "pre_mlp_layernorm.weight"): v for n, v in theirs.items()
        }
        norms = {n for n in theirs if n.endswith("pre_mlp_layernorm.weight")} if not name else set()
        assert ours.keys() == theirs.keys()
        for weight in ours.keys() - norms:
            assert ours[weight]["shape"] == theirs[weight]["shape"], weight
            for metric in ("l2", "cos"):
                assert (
                    abs(ours[weight][metric] - theirs[weight][metric]) <= 1e-5 * abs(theirs[weight][metric]) + 1e-6
                ), weight

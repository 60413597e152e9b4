"""Checkpoints of dist_checkpointing against each other, against files of ranks and against Hugging Face."""

import io
import json
import pickle
import subprocess
import sys

import pytest
import torch
from checkpoint_savers import LAYERS, llama, save_megatron, save_safetensors
from graph_cases import run
from megatron_savers import save_distributed_optimizer
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch_dist_savers import KINDS, save_torch_dist

LAYOUTS = {"tp1": (1, 1, 1), "tp2pp2": (2, 2, 1), "vpp2": (1, 2, 2)}


def compare(a, b, *options, code=0):
    done = run(["ckpt", "compare", a, b, "--json", *options], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


def others(result):
    return [w for w in result["weights"] if w["verdict"] != "bit-equal"]


def assert_equal(result, pairs):
    assert not others(result) and len(result["weights"]) == pairs
    assert result["only_a"] == result["only_b"] == result["copies_that_differ"] == []
    assert {w["matched_by"] for w in result["weights"]} <= {"name", "role"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """One model in three layouts, each with the files of ranks and all kinds of states; and for Hugging Face."""
    root = tmp_path_factory.mktemp("torch_dist")
    save_safetensors(llama(), root / "hf")
    for name, layout in LAYOUTS.items():
        save_megatron(llama(), root / f"ranks_{name}", *layout)
        save_distributed_optimizer(root / f"ranks_{name}", 3000)
        for kind in KINDS:
            save_torch_dist(llama(), root / f"{kind}_{name}", kind, *layout)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_states_of_all_layouts_are_bit_equal(saved, kind):
    for layout in LAYOUTS:
        path = saved / f"{kind}_{layout}"
        assert_equal(compare(path, saved / "fully_reshardable_tp1"), 6 * LAYERS + 3)
        assert_equal(compare(path, saved / "hf"), 9 * LAYERS + 3)
        for other in (f"ranks_{layout}", "ranks_tp2pp2", "fully_reshardable_tp1"):
            result = compare(path, saved / other, "--optimizer")
            assert_equal(result, 3 * (6 * LAYERS + 3))
            notes = " ".join(result["a"]["notes"])
            assert "rng_state" in notes and "are kept as names" in notes and "not cut" not in notes


QKV, PROJ, NORM = "self_attention.linear_qkv.weight", "self_attention.linear_proj.weight", "input_layernorm.weight"
FC1, FC2 = "mlp.linear_fc1.weight", "mlp.linear_fc2.weight"
# The weight in the files, the layer, and the place in it; None: not in a layer.
PLANTED = [
    *((name, layer, place) for layer, place in ((0, (0, 0)), (3, (17, 5))) for name in (QKV, PROJ, FC1, FC2)),
    (QKV, 1, (33, 31)),
    (QKV, 2, (63, 0)),
    (FC1, 1, (47, 2)),
    (FC1, 2, (95, 31)),
    ("embedding.word_embeddings.weight", None, (95, 3)),
    ("output_layer.weight", None, (0, 31)),
    ("decoder.final_layernorm.weight", None, (7,)),
]


def key_of(name, layer):
    # As Transformer Engine and the stacked layers have it.
    return name if layer is None else f"decoder.layers.{name}"


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_planted_differences_of_weights_are_named(saved, tmp_path, batch):
    """Five at once: exactly these weights, with their places in the whole tensors."""
    planted = PLANTED[batch * 5 : batch * 5 + 5]

    def change(checkpoint):
        for name, layer, place in planted:
            t = checkpoint[key_of(name, layer)]
            t[place if layer is None else (layer, *place)] += 1

    save_torch_dist(llama(), tmp_path / "b", "fully_reshardable", 2, 2, change=change)
    found = others(compare(saved / "fully_reshardable_tp1", tmp_path / "b", code=1))
    expected = {n if layer is None else f"decoder.layers.{layer}.{n}": list(place) for n, layer, place in planted}
    assert {w["b"]: w["first"]["index_b"] for w in found} == expected
    assert {w["verdict"] for w in found} == {"differs"}
    against_hf = others(compare(saved / "hf", tmp_path / "b", code=1))
    assert {w["b"].split("[")[0]: w["first"]["index_b"] for w in against_hf} == expected


@pytest.mark.parametrize(
    ("kind", "key", "weight", "place"),
    [
        # Rank 3 is the second of tensor parallelism on the second stage: its last weight lies first.
        ("dp_reshardable", "bucket_idx_0.exp_avg", "exp_avg.output_layer.weight", [64, 0]),
        ("dp_reshardable", "bucket_idx_0.exp_avg_sq", "exp_avg_sq.output_layer.weight", [64, 0]),
        ("dp_zero_gather_scatter", "exp_avg", "exp_avg.output_layer.weight", [64, 0]),
        ("fully_reshardable", f"exp_avg.decoder.layers.{QKV}", f"exp_avg.decoder.layers.0.{QKV}", [0, 0]),
        ("fully_sharded_model_space", f"exp_avg.decoder.layers.{FC2}", f"exp_avg.decoder.layers.0.{FC2}", [0, 0]),
    ],
)
def test_planted_differences_of_states_are_named(saved, tmp_path, kind, key, weight, place):
    def change(checkpoint):
        if kind.startswith("dp_zero"):
            ((buffer),) = checkpoint["optimizer.distributed.dp_group_idx_3.param_state/shard_0_1"][0].values()
            buffer[key][0] += 1
            return
        start = "optimizer.distributed.dp_group_idx_3." if kind == "dp_reshardable" else "optimizer.state."
        (name,) = [n for n in checkpoint if n.startswith(start) and n.endswith(key)]
        checkpoint[name].view(-1)[0] += 1

    save_torch_dist(llama(), tmp_path / "b", kind, 2, 2, change=change)
    (found,) = others(compare(saved / "fully_reshardable_tp1", tmp_path / "b", "--optimizer", code=1))
    assert (found["b"], found["first"]["index_b"], found["verdict"]) == (weight, place, "differs")


def test_buckets_in_another_order_are_not_guessed_at(tmp_path):
    def change(checkpoint):
        (name,) = [n for n in checkpoint if "group_idx_3" in n and n.endswith("bucket_idx_0.param")]
        checkpoint[name] = checkpoint[name].flip(0)

    save_torch_dist(llama(), tmp_path / "a", "dp_reshardable", 2, 2, change=change)
    shown = json.loads(run(["ckpt", "show", tmp_path / "a", "--json"]).stdout)
    assert all(t["name"].startswith("optimizer.distributed.dp_group_idx_") for t in shown["optimizer"])
    assert any("are not cut into those of the weights" in note for note in shown["notes"])
    assert len(shown["tensors"]) == 6 * LAYERS + 3


def test_states_that_hide_a_tensor_are_left_out(tmp_path):
    def change(checkpoint):
        name = "optimizer.distributed.dp_group_idx_0.param_state/shard_0_1"
        checkpoint[name][0] = torch.ones(2).to_sparse()

    save_torch_dist(llama(), tmp_path / "a", "dp_zero_gather_scatter", 2, 2, change=change)
    shown = json.loads(run(["ckpt", "show", tmp_path / "a", "--json"]).stdout)
    assert shown["optimizer"] == [] and any("are not cut" in note for note in shown["notes"])


def test_metadata_takes_little_memory(tmp_path):
    """Its values take forty times the room of the file when all of them are there at once."""
    tensors, chunks = 300, 128
    blob = io.BytesIO()
    torch.save(torch.arange(4.0), blob)
    described, stored = {}, {}
    for number in range(tensors):
        name = f"model.layers.{number}.self_attention.linear_qkv.weight"
        places = [torch.Size([4 * chunk]) for chunk in range(chunks)]
        described[name] = TensorStorageMetadata(
            properties=TensorProperties(dtype=torch.float32),
            size=torch.Size([4 * chunks]),
            chunks=[ChunkStorageMetadata(offsets=place, sizes=torch.Size([4])) for place in places],
        )
        for place in places:
            stored[MetadataIndex(name, place)] = _StorageInfo("__0_0.distcp", 0, len(blob.getvalue()))
    (tmp_path / "__0_0.distcp").write_bytes(blob.getvalue())
    with (tmp_path / ".metadata").open("wb") as file:
        pickle.dump(Metadata(described, storage_data=stored), file)
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
    )
    command = [sys.executable, "-c", code, "msprobe", "ckpt", "compare", tmp_path, tmp_path]
    most = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    size = (tmp_path / ".metadata").stat().st_size
    assert size > 4e6
    assert most < 40 * size, f"{most / 1e6:.0f} MB for {size / 1e6:.1f} MB"

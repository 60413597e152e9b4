"""msprobe ckpt and the comparison of checkpoints by config_check: every layout against every other, faults, hostile files."""

import itertools
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from checkpoint_savers import HIDDEN, VOCAB, llama, save_all, save_megatron, save_safetensors
from graph_cases import golden_set, run

EQUAL = {"bit-equal"}


def compare(a, b, *options, code=0):
    """The result as JSON."""
    done = run(["ckpt", "compare", a, b, "--json", *options], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


def verdicts(result):
    return {w["verdict"] for w in result["weights"]}


def flip(path, name, place, bit=0):
    """One bit of an element of a tensor in a file of torch.save()."""
    saved = torch.load(path, weights_only=False)
    model = saved.get("model", saved)
    model[name].view(torch.int32)[place] ^= 1 << bit
    torch.save(saved, path)


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    return save_all(llama(), tmp_path_factory.mktemp("layouts"))


def test_every_layout_equals_every_other(layouts):
    for a, b in itertools.combinations(layouts, 2):
        result = compare(a, b)
        pair = f"{a.name} {b.name}"
        assert verdicts(result) == EQUAL, pair
        assert result["only_a"] == result["only_b"] == result["copies_that_differ"] == [], pair
        assert {w["matched_by"] for w in result["weights"]} <= {"name", "role"}, pair
        # Each element of the model once; padding of the vocabulary is left out unless both sides have the same.
        padded = a.name.startswith("megatron") and b.name.startswith("megatron")
        elements = sum(t.numel() for t in llama().values()) + (2 * (128 - VOCAB) * HIDDEN if padded else 0)
        assert sum(w["elements"] for w in result["weights"]) == elements, pair


@pytest.mark.parametrize(
    ("rank", "name", "place", "merged", "part", "weight"),
    [
        # Rank 1 holds the second group of heads: two q, one k, one v of eight rows each.
        (
            "mp_rank_01_001",
            "decoder.layers.1.self_attention.linear_qkv.weight",
            (17, 3),
            [49, 3],
            "k",
            "3.self_attn.k_proj",
        ),
        (
            "mp_rank_01_001",
            "decoder.layers.1.self_attention.linear_qkv.weight",
            (2, 5),
            [34, 5],
            "q",
            "3.self_attn.q_proj",
        ),
        (
            "mp_rank_01_000",
            "decoder.layers.0.self_attention.linear_qkv.weight",
            (31, 0),
            [63, 0],
            "v",
            "0.self_attn.v_proj",
        ),
        # Halves of 24 rows: the second half of rank 1 is the end of "up".
        ("mp_rank_01_000", "decoder.layers.1.mlp.linear_fc1.weight", (30, 7), [78, 7], "up", "1.mlp.up_proj"),
        ("mp_rank_01_000", "decoder.layers.1.mlp.linear_fc1.weight", (3, 7), [27, 7], "gate", "1.mlp.gate_proj"),
        ("mp_rank_01_000", "decoder.layers.1.mlp.linear_fc2.weight", (3, 7), [3, 31], "", "1.mlp.down_proj"),
    ],
)
def test_a_flipped_bit_is_named_with_its_place_and_file(tmp_path, rank, name, place, merged, part, weight):
    save_megatron(llama(), tmp_path / "clean")
    save_megatron(llama(), tmp_path / "flipped")
    save_safetensors(llama(), tmp_path / "hf")
    flip(tmp_path / "flipped" / "iter_0000005" / rank / "model_optim_rng.pt", name, place)
    layer = int(name.split(".")[2]) + (2 if rank.endswith("001") else 0)
    whole = name.replace(f"layers.{name.split('.')[2]}", f"layers.{layer}")
    for other in ("clean", "hf"):
        result = compare(tmp_path / other, tmp_path / "flipped")
        (found,) = [w for w in result["weights"] if w["verdict"] not in EQUAL]
        assert found["b"].split("[")[0] == whole
        first = found["first"]
        assert (first["index_b"], first["part"]) == (merged, part)
        assert rank in first["file_b"]
        assert found["verdict"] == "round-off" and found["max_ulp"] == pytest.approx(1)
        assert found["equal_share"] == 1 - 1 / found["elements"]
        if other == "hf":
            assert found["a"] == f"model.layers.{weight}.weight"


def test_a_high_bit_is_a_difference_and_an_exit_code(tmp_path):
    save_megatron(llama(), tmp_path / "a")
    save_megatron(llama(), tmp_path / "b")
    file = tmp_path / "b" / "iter_0000005" / "mp_rank_00_000" / "model_optim_rng.pt"
    flip(file, "decoder.layers.0.mlp.linear_fc2.weight", (0, 0), bit=30)
    result = compare(tmp_path / "a", tmp_path / "b", code=1)
    assert result["different"] == 1
    text = run(["ckpt", "compare", tmp_path / "a", tmp_path / "b"], check=False).stdout
    assert "decoder.layers.0.mlp.linear_fc2.weight[0, 0]" in text and "mp_rank_00_000" in text


def test_copies_on_other_ranks_that_differ_are_named(tmp_path):
    save_megatron(llama(), tmp_path / "a")
    save_megatron(llama(), tmp_path / "b")
    file = tmp_path / "b" / "iter_0000005" / "mp_rank_01_000" / "model_optim_rng.pt"
    flip(file, "decoder.layers.1.mlp.linear_fc1.layer_norm_weight", (4,))
    result = compare(tmp_path / "a", tmp_path / "b", code=1)
    (copy,) = result["copies_that_differ"]
    assert copy.endswith("decoder.layers.1.pre_mlp_layernorm.weight")


def test_metrics_are_those_of_numpy(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((50, 70)).astype(np.float32)
    b = (a + 1e-3 * rng.standard_normal((50, 70))).astype(np.float32)
    b[0, :10] = a[0, :10]
    np.savez(tmp_path / "a.npz", w=a, half=a.astype(np.float16))
    np.savez(tmp_path / "b.npz", w=b, half=a)
    w, half = compare(tmp_path / "a.npz", tmp_path / "b.npz", code=1)["weights"]
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert w["l2"] == pytest.approx(np.linalg.norm(x - y), rel=1e-5)
    assert w["cosine"] == pytest.approx((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-6)
    assert w["max_abs"] == pytest.approx(np.abs(x - y).max(), rel=1e-5)
    assert w["equal_share"] == pytest.approx((a == b).mean())
    assert w["required_tolerance"] == pytest.approx((np.abs(x - y) / (1 + np.abs(y))).max(), rel=1e-5)
    assert w["max_ulp"] == pytest.approx((np.abs(x - y) / np.spacing(np.maximum(np.abs(a), np.abs(b)))).max(), rel=1e-5)
    assert w["worst"]["index_a"] == list(np.unravel_index(np.abs(x - y).argmax(), x.shape))
    assert half["verdict"] == "rounded"


def test_norms_centred_on_zero_and_weights_stored_the_other_way_round(tmp_path):
    state = llama()
    centred = {n: t - 1 if "norm" in n else t for n, t in state.items()}
    torch.save(state, tmp_path / "a.pt")
    torch.save(centred, tmp_path / "b.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt")
    assert verdicts(result) <= {"bit-equal", "round-off", "equal"}
    assert "centred on zero" in result["notes"][0]


def test_the_map_is_written_edited_and_read_back(tmp_path):
    torch.save({"x": torch.ones(3, 4), "y": torch.arange(5.0), "z": torch.zeros(2)}, tmp_path / "a.pt")
    torch.save({"one": torch.ones(3, 4), "two": torch.arange(5.0), "z": torch.zeros(2)}, tmp_path / "b.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", "--map-out", tmp_path / "map.yaml")
    assert {w["a"]: w["b"] for w in result["weights"]} == {"x": "one", "y": "two", "z": "z"}
    again = compare(tmp_path / "a.pt", tmp_path / "b.pt", "--map", tmp_path / "map.yaml")
    assert {w["matched_by"] for w in again["weights"]} == {"map"}
    (tmp_path / "map.yaml").write_text("pairs:\n  - a: x\n    b: one\nonly_a: [y]\nonly_b: [two]\n")
    edited = compare(tmp_path / "a.pt", tmp_path / "b.pt", "--map", tmp_path / "map.yaml", code=1)
    assert (edited["only_a"], edited["only_b"]) == (["y"], ["two"])
    (tmp_path / "map.yaml").write_text("pairs:\n  - a: nothing\n    b: one\n")
    done = run(["ckpt", "compare", tmp_path / "a.pt", tmp_path / "b.pt", "--map", tmp_path / "map.yaml"], check=False)
    assert done.returncode == 3 and "the map names nothing" in done.stderr


def test_show_lists_tensors(layouts):
    for path in layouts:
        shown = json.loads(run(["ckpt", "show", path, "--json"]).stdout)
        assert shown["tensors"] and shown["bytes"] > 0
    assert (
        "linear_qkv.weight float32 [64, 32]"
        in run(["ckpt", "show", next(p for p in layouts if p.name == "megatron_tp2pp2")]).stdout
    )


@pytest.mark.parametrize("other", ["ckpt_problem", "ckpt_problem1"])
def test_similarity_is_that_of_mindstudio_probe(tmp_path, other):
    root = golden_set()
    args = ["config_check", "-c", root / "data" / "ckpt_bench", root / "data" / other, "-o", tmp_path / "sim.json"]
    done = run(args)
    assert "extra.weight is in the second checkpoint only" in done.stderr
    ours = json.loads((tmp_path / "sim.json").read_text())
    theirs = json.loads((root / "expected" / f"cfg_{other}" / "out" / "sim.json").read_text())
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert (ours[name]["shape"], ours[name]["numel"]) == (expected["shape"], expected["numel"]), name
        for metric in ("l2", "cos"):
            # Theirs sums in float32.
            want = expected[metric] if expected[metric] is None else pytest.approx(expected[metric], rel=1e-5, abs=1e-6)
            assert ours[name][metric] == want, name
    again = run(args, check=False)
    assert again.returncode == 3 and "sim.json exists" in again.stderr


class _Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def _pickled(path, data):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", data)
        archive.writestr("x/version", "3\n")


def test_no_code_of_a_checkpoint_runs(tmp_path):
    mark = tmp_path / "ran"
    for module, name in (("os", "system"), ("builtins", "eval"), ("subprocess", "Popen"), ("posix", "system")):
        call = f"c{module}\n{name}\n(X".encode() + struct.pack("<I", len(str(mark))) + str(mark).encode() + b"tR."
        _pickled(tmp_path / "a.pt", b"\x80\x02" + call)
        done = run(["ckpt", "show", tmp_path / "a.pt"], check=False)
        assert done.returncode == 3 and f"it names {module}.{name}" in done.stderr
    _pickled(tmp_path / "b.pt", pickle.dumps({"w": _Runs(mark)}, protocol=2))
    done = run(["ckpt", "show", tmp_path / "b.pt"], check=False)
    assert done.returncode == 3
    (tmp_path / "dcp").mkdir()
    (tmp_path / "dcp" / ".metadata").write_bytes(pickle.dumps({"w": _Runs(mark)}))
    done = run(["ckpt", "show", tmp_path / "dcp"], check=False)
    assert done.returncode == 3
    assert not mark.exists()


def refused(path, word):
    done = run(["ckpt", "show", path], check=False)
    (line,) = done.stderr.strip().splitlines()
    assert done.returncode == 3 and line.startswith("[msprobe] error: ") and word in line, done.stderr


def test_damaged_checkpoints_are_refused(tmp_path):
    root = tmp_path / "l"
    root.mkdir()
    save_all(llama(), root)
    (root / "safetensors" / "model-00002-of-00002.safetensors").unlink()
    refused(root / "safetensors", "which is missing")
    data = (root / "mindspore.ckpt").read_bytes()
    (root / "mindspore.ckpt").write_bytes(data[: len(data) // 2])
    refused(root / "mindspore.ckpt", "not a whole MindSpore checkpoint")
    shard = root / "dcp" / "__0_0.distcp"
    shard.write_bytes(shard.read_bytes()[:1000])
    refused(root / "dcp", "cut short")
    (root / "zero2" / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    refused(root / "zero2", "copy the files of all ranks")
    (root / "zero3" / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    refused(root / "zero3", "copy the files of all ranks")
    (root / "megatron_tp2pp2" / "iter_0000005" / "mp_rank_01_001" / "model_optim_rng.pt").unlink()
    refused(root / "megatron_tp2pp2", "copy the files of all ranks")
    (root / "megatron_vpp" / "latest_checkpointed_iteration.txt").write_text("../../etc")
    refused(root / "megatron_vpp", "names no iteration")
    index = root / "bin" / "pytorch_model.bin.index.json"
    index.write_text('{"weight_map": {"w": "../x.bin"}}')
    refused(root / "bin", "not a file beside it")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "holds no checkpoint")
    (tmp_path / "text.ckpt").write_text("hello, this is no checkpoint")
    refused(tmp_path / "text.ckpt", "cannot be read")

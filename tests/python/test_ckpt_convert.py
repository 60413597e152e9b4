"""msprobe ckpt convert: weights from any layout to files that the frameworks themselves read."""

import json
import resource
import subprocess

import numpy as np
import torch
from checkpoint_savers import llama, mindformers_name, save_all
from graph_cases import find_command, run
from safetensors.torch import load_file


def convert(*arguments, code=0):
    done = run(["ckpt", "convert", "--json", *arguments], check=False)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def assert_same(state, expected):
    assert list(state) == list(expected) or sorted(state) == sorted(expected)
    for name, t in expected.items():
        assert state[name].dtype == t.dtype and state[name].shape == t.shape, name
        assert torch.equal(state[name], t), name


class Layers(torch.nn.Module):
    """One of each layer that MindSpore names otherwise, and some that it does not."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 6)
        self.conv = torch.nn.Conv1d(6, 4, 3)
        self.flat = torch.nn.Conv2d(1, 3, (1, 3))
        self.batch = torch.nn.BatchNorm1d(4)
        self.act = torch.nn.PReLU(4)
        self.prelu = torch.nn.PReLU(4)
        self.layer = torch.nn.LayerNorm(4)
        self.group = torch.nn.GroupNorm(2, 4)
        self.rms = torch.nn.RMSNorm(4)
        self.out = torch.nn.Linear(4, 2)


def layers_state():
    torch.manual_seed(0)
    return {n: t + torch.rand(t.shape) if t.is_floating_point() else t for n, t in Layers().state_dict().items()}


MINDSPORE = {
    "embedding.weight": "embedding.embedding_table",
    "batch.weight": "batch.gamma",
    "batch.bias": "batch.beta",
    "batch.running_mean": "batch.moving_mean",
    "batch.running_var": "batch.moving_variance",
    "prelu.weight": "prelu.w",
    "layer.weight": "layer.gamma",
    "layer.bias": "layer.beta",
    "group.weight": "group.gamma",
    "group.bias": "group.beta",
}


def test_layers_get_the_names_and_shapes_of_mindspore(tmp_path):
    state = layers_state()
    torch.save(state, tmp_path / "a.pt")
    report = convert(tmp_path / "a.pt", tmp_path / "a.ckpt")
    assert report["left_out"] == ["batch.num_batches_tracked"]
    names = {pair["from"]: pair["to"] for pair in report["names"]}
    assert names == {n: MINDSPORE.get(n, n) for n in state if not n.endswith("num_batches_tracked")}
    shown = json.loads(run(["ckpt", "show", tmp_path / "a.ckpt", "--json"]).stdout)
    shapes = {t["name"]: t["shape"] for t in shown["tensors"]}
    assert shapes["conv.weight"] == [4, 6, 1, 3] and shapes["flat.weight"] == [3, 1, 1, 3]

    back = convert(tmp_path / "a.ckpt", tmp_path / "b.pt")
    assert "2 weights of convolutions" in back["notes"][0]  # nothing in the file tells Conv1d from Conv2d
    state.pop("batch.num_batches_tracked")
    state["conv.weight"] = state["conv.weight"].unsqueeze(2)
    assert_same(torch.load(tmp_path / "b.pt", weights_only=True), state)
    # A checkpoint of the model that is to load it does.
    torch.save(Layers().state_dict(), tmp_path / "like.pt")
    report = convert(tmp_path / "a.ckpt", tmp_path / "c.safetensors", "--like", tmp_path / "like.pt", code=3)
    assert "num_batches_tracked" in report
    torch.save({n: t for n, t in Layers().state_dict().items() if "num_b" not in n}, tmp_path / "like.pt")
    convert(tmp_path / "a.ckpt", tmp_path / "c.safetensors", "--like", tmp_path / "like.pt")
    state["conv.weight"] = state["conv.weight"].squeeze(2)
    assert_same(load_file(tmp_path / "c.safetensors"), state)


def test_every_layout_becomes_what_transformers_and_mindformers_name(tmp_path):
    (tmp_path / "from").mkdir()
    state = llama()
    for path in save_all(state, tmp_path / "from"):
        out = tmp_path / f"{path.name}.safetensors"
        convert(path, out, "--names", "transformers")
        written = load_file(out)
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            written[name] = written[name][: len(state[name])]  # nothing in Megatron's arguments says what is padding
        assert_same(written, state)
        other = tmp_path / f"{path.name}.bin"
        convert(path, other, "--names", "mindformers")
        assert sorted(torch.load(other, weights_only=True)) == sorted(map(mindformers_name, state))


def test_a_vocabulary_that_is_known_loses_its_padding_and_centred_norms_get_their_one(tmp_path):
    from argparse import Namespace

    state = {n: t for n, t in llama().items() if "embed" in n or "layers.0." in n or n == "model.norm.weight"}
    padded = {n: torch.cat([t, torch.zeros(32, 32)]) if "embed" in n else t for n, t in state.items()}
    padded = {n: t - 1 if "norm" in n else t for n, t in padded.items()}
    args = Namespace(vocab_size=96, apply_layernorm_1p=True, num_attention_heads=4, num_query_groups=2, kv_channels=8)
    torch.save({"model": padded, "args": args}, tmp_path / "a.pt")
    report = convert(tmp_path / "a.pt", tmp_path / "b.pt", "--names", "transformers")
    assert any("behind word 96" in note for note in report["notes"])
    written = torch.load(tmp_path / "b.pt", weights_only=True)
    assert written["model.embed_tokens.weight"].shape == (96, 32)
    for name, t in state.items():
        assert torch.allclose(written[name], t, atol=1e-6), name


def test_types_are_rounded_as_torch_rounds(tmp_path):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65520, 65519.99, 3.4e38, 1e-45, 6e-8, 2.98e-8, 2.9802322e-8]
    values = torch.from_numpy(
        np.concatenate([bits, np.array(special, np.float32), rng.standard_normal(5000)]).astype("f")
    )
    torch.save({"x": values, "count": torch.arange(5)}, tmp_path / "a.pt")
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        name = str(dtype).removeprefix("torch.")
        convert(tmp_path / "a.pt", tmp_path / f"{name}.safetensors", "--dtype", name)
        got = load_file(tmp_path / f"{name}.safetensors")
        want = values.to(dtype)
        same = (got["x"] == want) | (got["x"].isnan() & want.isnan())
        assert got["x"].dtype == dtype and same.all(), values[~same][:5]
        assert torch.equal(got["x"].signbit()[~want.isnan()], want.signbit()[~want.isnan()])
        assert torch.equal(got["count"], torch.arange(5))
        convert(tmp_path / f"{name}.safetensors", tmp_path / f"{name}.pt", "--dtype", "float32")
        again = torch.load(tmp_path / f"{name}.pt", weights_only=True)["x"]
        assert torch.equal(again.nan_to_num(), want.float().nan_to_num())


def test_odd_tensors_survive(tmp_path):
    state = {
        "none": torch.zeros(0, 3),
        "one": torch.tensor(2.5),
        "strided": torch.arange(24.0).reshape(4, 6).t()[::2],
        "float8": torch.randn(7).to(torch.float8_e4m3fn),
        "flags": torch.tensor([True, False]),
        'a "quoted"\nname': torch.ones(2, 1, 2, 1, 2, dtype=torch.int16),
    }
    torch.save(state, tmp_path / "a.pt")
    for ending, load in (("safetensors", load_file), ("pth", lambda p: torch.load(p, weights_only=True))):
        convert(tmp_path / "a.pt", tmp_path / f"b.{ending}")
        got = load(tmp_path / f"b.{ending}")
        assert got.keys() == state.keys()
        for name, t in state.items():
            assert got[name].shape == t.shape and torch.equal(got[name].double(), t.double()), name
    for name, words in (("float8", "no type float8_e4m3fn"), ("none", "has no elements")):
        torch.save({"fits": torch.ones(2), name: state[name]}, tmp_path / "c.pt")
        assert words in convert(tmp_path / "c.pt", tmp_path / "c.ckpt", code=3)
        assert not (tmp_path / "c.ckpt").exists()


def test_a_map_names_weights_and_leaves_some_out(tmp_path):
    torch.save({"a": torch.ones(2), "b": torch.zeros(3), "c": torch.arange(4)}, tmp_path / "a.pt")
    (tmp_path / "map.yaml").write_text("pairs:\n  - a: a\n    b: first.gamma\nonly_a: [b]\n")
    report = convert(tmp_path / "a.pt", tmp_path / "b.ckpt", "--map", tmp_path / "map.yaml")
    assert report["left_out"] == ["b"]
    assert {p["from"]: p["to"] for p in report["names"]} == {"a": "first.gamma", "c": "c"}
    (tmp_path / "map.yaml").write_text("pairs:\n  - a: a\n    b: c\n")
    assert "two weights would have the name c" in convert(
        tmp_path / "a.pt", tmp_path / "c.ckpt", "--map", tmp_path / "map.yaml", code=3
    )
    (tmp_path / "map.yaml").write_text("pairs:\n  - a: nothing\n    b: c\n")
    assert "the map names nothing" in convert(
        tmp_path / "a.pt", tmp_path / "c.ckpt", "--map", tmp_path / "map.yaml", code=3
    )


def test_another_layout_is_taken_from_a_checkpoint(tmp_path):
    """Experts apart and together, queries, keys and values fused, weights the other way round."""
    state = {n.replace("mlp.", "mlp.experts.0."): t for n, t in llama().items()}
    torch.save(state, tmp_path / "a.pt")
    fused = {}
    for name, t in state.items():
        if ".gate_proj" in name:
            up = state[name.replace("gate_proj", "up_proj")]
            fused[name.replace("0.gate_proj.weight", "gate_up_proj")] = torch.cat([t, up])[None]
        elif ".down_proj" in name:
            fused[name.replace("0.down_proj.weight", "down_proj")] = t[None]
        elif ".q_proj" in name:
            parts = [state[name.replace("q_proj", f"{x}_proj")] for x in "qkv"]
            fused[name.replace("q_proj", "qkv_proj")] = torch.cat(parts)
        elif not any(x in name for x in (".k_proj", ".v_proj", ".up_proj")):
            fused[name] = t
    torch.save({n: torch.zeros_like(t) for n, t in fused.items()}, tmp_path / "like.pt")
    convert(tmp_path / "a.pt", tmp_path / "b.pt", "--like", tmp_path / "like.pt", code=3)  # the heads are not known
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text('{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}')
    torch.save(state, tmp_path / "hf" / "pytorch_model.bin")
    convert(tmp_path / "hf", tmp_path / "b.pt", "--like", tmp_path / "like.pt")
    assert_same(torch.load(tmp_path / "b.pt", weights_only=True), fused)
    convert(tmp_path / "b.pt", tmp_path / "c.pt", "--like", tmp_path / "hf")
    assert_same(torch.load(tmp_path / "c.pt", weights_only=True), state)


def test_what_cannot_be_done_is_said_and_nothing_is_written(tmp_path):
    torch.save({"x": torch.ones(3)}, tmp_path / "a.pt")
    torch.save({"y": torch.ones(3), "z": torch.ones(3)}, tmp_path / "like.pt")
    for arguments, word in (
        (["b.txt"], "has no known ending"),
        (["a.pt"], "exists"),
        (["b.pt", "--names", "transformers"], "not built like LLaMA"),
        (["b.pt", "--like", "like.pt"], "no partner"),
        (["b.pt", "--like", "nowhere"], "does not exist"),
        (["nowhere/b.pt"], "nowhere"),
    ):
        done = run(["ckpt", "convert", "a.pt", *arguments], cwd=tmp_path, check=False)
        (line,) = done.stderr.strip().splitlines()
        assert done.returncode in (2, 3, 4) and word in line, (arguments, done.stderr)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pt", "like.pt"]


def test_a_disk_that_is_full_leaves_nothing(tmp_path):
    torch.save({"x": torch.ones(1 << 20)}, tmp_path / "a.pt")

    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for name in ("b.ckpt", "b.safetensors", "b.pt"):
        done = subprocess.run(
            [find_command(), "ckpt", "convert", tmp_path / "a.pt", tmp_path / name],
            capture_output=True,
            text=True,
            preexec_fn=little,
        )
        assert done.returncode == 4 and name in done.stderr, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["a.pt"]

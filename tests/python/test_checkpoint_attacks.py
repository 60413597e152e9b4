"""Checkpoints that are no checkpoints: each ends in one line and exit code 3, soon, with nothing run and nothing written."""

import json
import os
import pickle
import resource
import subprocess
import zipfile

import numpy as np
import pytest
import torch
from checkpoint_savers import llama, save_megatron, save_safetensors
from graph_cases import find_command, run
from megatron_savers import mixture, save_distributed_optimizer


def limited():
    """Processor time and memory that no honest file of this size needs."""
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def msprobe(*arguments):
    return subprocess.run(
        [find_command(), *map(str, arguments)], capture_output=True, text=True, preexec_fn=limited, timeout=120
    )


def refused(path, *words):
    for command in (["ckpt", "show", path], ["ckpt", "convert", path, path.parent / "out.ckpt"]):
        done = msprobe(*command)
        lines = done.stderr.strip().splitlines()
        assert done.returncode == 3 and len(lines) == 1, (done.returncode, done.stderr)
        assert lines[0].startswith("[msprobe] error: ") and all(word in lines[0] for word in words), lines
    assert not (path.parent / "out.ckpt").exists()


def test_archives_that_unpack_to_more_than_they_are(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", bytes(200 << 20))
    refused(tmp_path / "bomb.npz", "compressed")
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", bytes(200 << 20))
    refused(tmp_path / "bomb.pt", "compressed")


def test_pickles_that_grow(tmp_path):
    """Lists of lists, each ten times the one before: a thousand bytes for 10^30 values."""
    code = b"\x80\x02]q\x00"
    for level in range(30):
        code += b"](" + b"h" + bytes([level]) + (b"h" + bytes([level])) * 9 + b"eq" + bytes([level + 1])
    with zipfile.ZipFile(tmp_path / "grows.pt", "w") as archive:
        archive.writestr("x/data.pkl", code + b".")
        archive.writestr("x/version", "3\n")
    refused(tmp_path / "grows.pt", "grows.pt")
    with zipfile.ZipFile(tmp_path / "deep.pt", "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + b"(" * 1_000_000 + b"l" * 1_000_000 + b".")
        archive.writestr("x/version", "3\n")
    refused(tmp_path / "deep.pt", "deep.pt")


def test_files_that_are_none_and_links_that_lead_in_circles(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    refused(tmp_path / "model.safetensors", "model.safetensors")
    (tmp_path / "circle").mkdir()
    (tmp_path / "circle" / "mp_rank_00").symlink_to("mp_rank_00")
    refused(tmp_path / "circle", "circle")
    (tmp_path / "loop.ckpt").symlink_to("loop.ckpt")
    refused(tmp_path / "loop.ckpt", "loop.ckpt")
    (tmp_path / "empty.safetensors").touch()
    refused(tmp_path / "empty.safetensors", "empty.safetensors")
    with open(tmp_path / "sparse.ckpt", "wb") as file:
        file.truncate(1 << 38)
    done = run(["ckpt", "show", tmp_path / "sparse.ckpt"], check=False)  # larger than the memory that others get
    assert done.returncode == 3, done.stderr


def test_every_length_of_a_file_is_refused_or_read(tmp_path):
    torch.save({"w": torch.arange(6.0), "n": {"b": torch.ones(2, 3)}}, tmp_path / "a.pt")
    run(["ckpt", "convert", tmp_path / "a.pt", tmp_path / "a.ckpt"])
    run(["ckpt", "convert", tmp_path / "a.pt", tmp_path / "a.safetensors"])
    for name in ("a.pt", "a.ckpt", "a.safetensors"):
        data = (tmp_path / name).read_bytes()
        for length in {1, 7, 8, 9, len(data) // 3, len(data) // 2, len(data) - 20, len(data) - 1}:
            cut = tmp_path / f"cut.{name}"
            cut.write_bytes(data[:length])
            done = msprobe("ckpt", "show", cut)
            assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1, (name, length, done.stderr)


def test_a_hostile_optimizer_beside_good_weights(tmp_path):
    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'ran'}",)

    save_megatron(llama(), tmp_path / "a")
    save_distributed_optimizer(tmp_path / "a")
    file = tmp_path / "a" / "iter_0000005" / "mp_rank_00_000" / "distrib_optim.pt"
    for data in (pickle.dumps(Runs()), file.read_bytes()[:1000]):
        file.write_bytes(data)
        shown = json.loads(run(["ckpt", "show", tmp_path / "a", "--json"]).stdout)
        assert "are not read" in shown["notes"][0] and len(shown["tensors"]) == 27
    assert not (tmp_path / "ran").exists()


def test_configurations_of_a_hundred_megabytes(tmp_path):
    save_safetensors(llama(), tmp_path / "a")
    config = tmp_path / "a" / "config.json"
    config.write_text('{"model_type": "llama", "x": "' + "y" * (100 << 20) + '"}')
    done = msprobe("config_check", "-tp", tmp_path / "a")
    assert done.returncode == 3 and "more than the 16 MiB" in done.stderr
    done = msprobe("ckpt", "compare", tmp_path / "a", tmp_path / "a")  # weights can be compared without
    assert done.returncode == 0


def test_two_different_models(tmp_path):
    """Whatever finds a partner, nothing is called equal, and what has none is listed."""
    save_safetensors(llama(), tmp_path / "a")
    save_safetensors(mixture(5), tmp_path / "b")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "c.npz", **{f"conv{i}.weight": rng.standard_normal((8, 3, 3, 3)) for i in range(5)})
    for other in ("b", "c.npz"):
        done = msprobe("ckpt", "compare", tmp_path / "a", tmp_path / other, "--json")
        assert done.returncode == 1, done.stderr
        result = json.loads(done.stdout)
        assert result["only_a"] and result["only_b"]
        assert not [w for w in result["weights"] if w["verdict"] in ("bit-equal", "equal", "rounded")]


@pytest.mark.parametrize("name", ["../../out", "/etc/passwd", "a\x00b"])
def test_names_of_tensors_are_no_paths(tmp_path, name):
    torch.save({name: torch.ones(2)}, tmp_path / "a.pt")
    before = sorted(tmp_path.parent.iterdir())
    for ending in ("ckpt", "safetensors", "pt2.pt"):
        assert msprobe("ckpt", "convert", tmp_path / "a.pt", tmp_path / f"b.{ending}").returncode == 0
        shown = json.loads(msprobe("ckpt", "show", tmp_path / f"b.{ending}", "--json").stdout)
        assert [t["name"] for t in shown["tensors"]] == [name]
    assert sorted(tmp_path.parent.iterdir()) == before

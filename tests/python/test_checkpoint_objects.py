"""Objects in checkpoints: each stays a name, nothing is imported or run, and what hides a tensor is refused."""

import functools
import io
import json
import os
import subprocess
import sys
import types

import pytest
import torch
from checkpoint_savers import llama, save_distributed, save_megatron, save_safetensors
from foreign_arguments import OwnDict, Thing, function, objects, with_objects
from graph_cases import run


def compare(a, b, *options, code=0):
    done = run(["ckpt", "compare", a, b, "--json", *options], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


def assert_equal(result):
    assert {w["verdict"] for w in result["weights"]} == {"bit-equal"}
    assert result["only_a"] == result["only_b"] == result["copies_that_differ"] == []


def ranks(directory):
    return sorted(directory.glob("iter_*/*/model_optim_rng.pt"))


def rewrite(file, change, protocol=2):
    saved = torch.load(file, weights_only=False)
    change(saved)
    torch.save(saved, file, pickle_protocol=protocol)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arguments_with_objects_of_every_kind(tmp_path, protocol):
    save_safetensors(llama(), tmp_path / "hf")
    for name, layout in (("pp", (2, 2, 1)), ("vpp", (1, 2, 2))):
        save_megatron(llama(), tmp_path / name, *layout)

        def fill(saved):
            saved["args"] = with_objects(saved["args"])
            saved["rng_state"] = [{"of_numpy": objects()["random"].get_state(), "torch": torch.get_rng_state()}]

        for file in ranks(tmp_path / name):
            rewrite(file, fill, protocol)
        result = compare(tmp_path / name, tmp_path / "hf")
        assert_equal(result)
        notes = " ".join(result["a"]["notes"])
        assert "objects in the arguments are kept as names, none was made: " in notes
        assert "not read, for it holds no weights: rng_state" in notes
    assert_equal(compare(tmp_path / "pp", tmp_path / "vpp"))


def test_arguments_beside_the_files_of_torch_distributed(tmp_path):
    save_safetensors(llama(), tmp_path / "hf")
    save_megatron(llama(), tmp_path / "whole", 1, 1)
    (file,) = ranks(tmp_path / "whole")
    saved = torch.load(file, weights_only=False)
    save_distributed(saved["model"], tmp_path / "dist")
    torch.save({"args": with_objects(saved["args"])}, tmp_path / "dist" / "common.pt")
    result = compare(tmp_path / "dist", tmp_path / "hf")
    assert_equal(result)
    assert result["a"]["format"] == "torch.distributed (Megatron)"
    assert_equal(compare(tmp_path / "dist", tmp_path / "whole"))


def test_each_object_alone(tmp_path):
    """None of them is what lets the others through."""
    for name, value in objects().items():
        torch.save({"model": {"w": torch.ones(2)}, "args": types.SimpleNamespace(x=value)}, tmp_path / "a.pt")
        done = run(["ckpt", "show", tmp_path / "a.pt", "--json"], check=False)
        assert done.returncode == 0, (name, done.stderr)
        assert [t["name"] for t in json.loads(done.stdout)["tensors"]] == ["w"], name


def test_modules_are_not_imported(tmp_path):
    """A class of a module that leaves a mark where it is imported, also by any Python that msprobe would start."""
    (tmp_path / "marks_its_import.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w').close()\n\n\nclass Setting:\n    def __setstate__(self, state):\n"
        f"        open({str(tmp_path / 'made')!r}, 'w').close()\n"
    )
    code = (
        "import torch, marks_its_import as m; s = m.Setting(); s.x = 1\n"
        "torch.save({'model': {'w': torch.ones(2)}, 'args': {'s': s}}, 'a.pt')"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)
    (tmp_path / "imported").unlink()
    shown = json.loads(run(["ckpt", "show", tmp_path / "a.pt", "--json"], env=environment).stdout)
    assert len(shown["tensors"]) == 1 and "marks_its_import.Setting" in shown["notes"][0]
    assert not (tmp_path / "imported").exists() and not (tmp_path / "made").exists()


class _Calls:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def test_calls_that_would_run_something_are_refused_where_they_are(tmp_path):
    mark = tmp_path / "ran"
    command = f"touch {mark}"
    for hostile in (
        _Calls(os.system, command),
        _Calls(eval, f"open({str(mark)!r}, 'w')"),
        _Calls(subprocess.getoutput, command),
        _Calls(functools.partial(os.system, command)),
        _Calls(open, str(mark), "w"),
    ):
        torch.save({"model": {"w": torch.ones(2)}, "args": types.SimpleNamespace(x=[hostile])}, tmp_path / "a.pt")
        done = run(["ckpt", "show", tmp_path / "a.pt"], check=False)
        assert done.returncode == 3 and "which is not read from files" in done.stderr, done.stderr
    assert not mark.exists()


class _Rebuilt:
    """What becomes a tensor by a function of its own."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return function, self.arguments


class _Subclass(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __torch_dispatch__(self, *arguments, **others):
        raise NotImplementedError

    def __reduce_ex__(self, protocol):
        rebuild = (torch._utils._rebuild_wrapper_subclass, type(self), (), {"inner": self.inner})
        return torch._tensor._rebuild_from_type_v2, rebuild


def test_what_hides_a_tensor_is_refused_among_weights_only(tmp_path):
    w = torch.arange(6.0).reshape(2, 3)
    for hidden, what in (
        (_Rebuilt(w), "foreign_arguments.function"),
        (_Rebuilt([{"x": (w,)}]), "foreign_arguments.function"),
        (w.to_sparse(), "torch._utils._rebuild_sparse_tensor"),
        (_Subclass(w), "_Subclass"),
        (w.clone().untyped_storage(), "a storage"),
    ):
        torch.save({"model": {"good": w, "hidden": hidden}}, tmp_path / "a.pt")
        done = run(["ckpt", "show", tmp_path / "a.pt"], check=False)
        assert done.returncode == 3 and "holds hidden as " in done.stderr and what in done.stderr, done.stderr
        # In arguments it is no weight, and without its states an optimizer is left out as a whole.
        saved = {"model": {"good": w}, "args": {"x": hidden}, "optimizer": {"state": {0: {"a": w, "b": hidden}}}}
        torch.save(saved, tmp_path / "a.pt")
        shown = json.loads(run(["ckpt", "show", tmp_path / "a.pt", "--json"]).stdout)
        assert [t["name"] for t in shown["tensors"]] == ["good"] and shown["optimizer"] == []
        assert shown["notes"][0].startswith("states of the optimizer are not read: "), shown["notes"]


def test_objects_among_weights(tmp_path):
    """What holds none is said, and classes of dicts and attributes are looked into."""
    thing = Thing()
    thing.inner = torch.ones(3)
    model = OwnDict({"w": torch.ones(2), "own": OwnDict(v=torch.zeros(1)), "thing": thing})
    for i in range(8):
        model[f"layers.{i}._extra_state"] = io.BytesIO(b"scales")
    torch.save({"model": model, "lr_scheduler": {"last_epoch": 3}}, tmp_path / "a.pt")
    shown = json.loads(run(["ckpt", "show", tmp_path / "a.pt", "--json"]).stdout)
    assert [t["name"] for t in shown["tensors"]] == ["w", "own.v", "thing.inner"]
    objects_note, others = shown["notes"]
    assert objects_note.startswith("8 objects of _io.BytesIO among the tensors") and "and 2 more" in objects_note
    assert others == "not read, for it holds no weights: lr_scheduler"

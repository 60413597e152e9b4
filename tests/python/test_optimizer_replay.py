"""msprobe optimizer_replay: planted faults are named by their term, optimizers of PyTorch are clean, training is not changed."""

import json
import math
import shutil
import subprocess
import sys
from functools import partial

import optimizer_mutants as mutants
import pytest
import torch
from graph_cases import run
from msprobe.pytorch import OptimizerRecord

# (class, fault, settings, term, scope): each with its own numbers in the groups, and one term of the update wrong.
MUTANTS = [
    ("AdamW", "bias_correction", {}, "bias_correction", "all weights"),
    ("AdamW", "weight_decay", {}, "weight_decay", "weights of one dimension"),
    ("AdamW", "eps_inside_root", {"eps": 1e-6}, "eps_inside_root", "all weights"),
    ("AdamW", "clip_threshold", {}, "clip_threshold", "all weights"),
    ("AdamW", "lr", {}, "lr", "all weights"),
    ("SGD", "dampening", {}, "dampening", "all weights"),
    ("AdamW", "amsgrad", {"amsgrad": True}, "amsgrad", None),
    ("SGD", "nesterov", {}, "nesterov", "all weights"),
    ("AdamW", "swapped_betas", {}, "swapped_betas", "all weights"),
    ("AdamW", "maximize", {}, "maximize", "all weights"),
    ("AdamW", "decay_coupled", {}, "decay_coupled", "weights of two dimensions and more"),
    ("AdamW", "loss_scale", {}, "loss_scale", "all weights"),
]
MORE = [
    ("AdamW", "bias_correction2", {}, "bias_correction2", "all weights"),
    ("AdamW", "step_count", {}, "step_count", "all weights"),
    ("AdamW", "weight_decay_missing", {}, "weight_decay_missing", "weights of two dimensions and more"),
    ("AdamW", "decay_without_rate", {}, "decay_without_rate", "weights of two dimensions and more"),
    ("AdamW", "eps_before_correction", {"eps": 1e-5}, "eps_before_correction", "all weights"),
    ("AdamW", "beta2", {}, "beta2", "all weights"),
    ("SGD", "momentum", {}, "momentum", "all weights"),
    ("Lion", "sign_of_new_moment", {}, "sign_of_new_moment", "all weights"),
    ("AdamW", "root_over_correction", {}, "bias_correction2", "all weights"),
    ("AdamW", "exchanged_corrections", {}, "bias_correction", "all weights"),
    ("AdamW", "second_moment_root", {}, "second_moment_root", "all weights"),
    ("AdamW", "old_moment", {}, "old_moment", "all weights"),
    ("AdamW", "whole_gradient", {}, "whole_gradient", "all weights"),
    ("AdamW", "decay_after_update", {"lr": 0.02}, "decay_after_update", "weights of two dimensions and more"),
]


def replay(*args, code=0):
    """The result as JSON."""
    done = run(["optimizer_replay", *args, "--json"], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


def make(kind, fault="", **settings):
    """What makes such an optimizer for a model."""

    def of_model(model):
        optimizer = getattr(mutants, kind)(mutants.groups_of(model, 0.1), **settings)
        optimizer.fault = fault
        for group in optimizer.param_groups:
            group["next_lr"] = lambda lr: lr + 0.25e-3  # the schedule is one step ahead
        return optimizer

    return of_model


@pytest.mark.parametrize(
    ("kind", "fault", "settings", "term", "scope"), MUTANTS + [pytest.param(*m, marks=pytest.mark.deep) for m in MORE]
)
def test_a_wrong_term_is_named(tmp_path, kind, fault, settings, term, scope):
    path = mutants.train(tmp_path / "record", make(kind, fault, **settings))
    (finding,) = replay(path, code=1)["a"]["findings"]
    assert finding["term"] == term and finding["or"] == []
    assert scope is None or finding["scope"] == scope
    if fault == "lr":
        assert "step 0 says 0.00025 and applies 0.0005" in finding["says"]
        assert finding["says"].endswith("that of the step after it")
    if fault == "weight_decay":
        assert {"0.bias", "1.weight", "1.bias", "3.bias"} == {*finding["weights"]}


@pytest.mark.parametrize("kind", ["AdamW", "SGD", "Lion"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_without_a_fault_there_is_none(tmp_path, kind, dtype):
    assert replay(mutants.train(tmp_path / "record", make(kind), dtype=dtype))["clean"]


TORCH = [
    ("SGD", {"momentum": 0.9, "weight_decay": 1e-2, "nesterov": True}),
    ("SGD", {}),
    ("Adam", {"weight_decay": 1e-2}),
    ("AdamW", {"amsgrad": True}),
    ("AdamW", {"maximize": True}),
]
WAYS = [{"foreach": True}, pytest.param({"foreach": False}, marks=pytest.mark.deep), {"fused": True}]


def of_torch(made, settings, model):
    """An optimizer of PyTorch."""
    return made(model.parameters(), lr=1e-2, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_optimizers_of_torch_are_clean(tmp_path, way, dtype):
    for i, (name, settings) in enumerate(TORCH):
        if name == "SGD" and "fused" in way and dtype == torch.bfloat16:
            continue  # test_fused_sgd_leaves_bfloat16_weights_as_they_are
        made = getattr(torch.optim, name)
        path = mutants.train(tmp_path / str(i), partial(of_torch, made, settings | way), dtype=dtype)
        result = replay(path)
        assert result["clean"], (name, settings)
        assert max(w["max_ulp"] for w in result["a"]["weights"]) < 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_matrix_optimizers_of_torch_are_clean(tmp_path, dtype):
    path = mutants.train(
        tmp_path / "f", lambda m: torch.optim.Adafactor(m.parameters(), lr=1e-2, weight_decay=0.1), dtype=dtype
    )
    assert replay(path)["clean"]
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this PyTorch has no Muon")
    first, second = (torch.nn.Linear(a, b, bias=False) for a, b in ((24, 48), (48, 8)))
    model = torch.nn.Sequential(first, torch.nn.GELU(), second).to(dtype)
    path = mutants.train(tmp_path / "m", lambda m: torch.optim.Muon(m.parameters(), lr=1e-2), model=model, dtype=dtype)
    assert replay(path)["clean"]


def test_master_weights_of_a_bfloat16_model_are_clean(tmp_path):
    model = mutants.model_of(torch.bfloat16)
    masters = [torch.nn.Parameter(p.detach().float()) for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=1e-3)
    with OptimizerRecord(tmp_path / "r", optimizer, steps=range(3)):
        for _ in range(3):
            model(torch.randn(16, 24, dtype=torch.bfloat16)).float().square().mean().backward()
            for p, master in zip(model.parameters(), masters):
                master.grad = p.grad.float()
                p.grad = None
            optimizer.step()
            with torch.no_grad():
                for p, master in zip(model.parameters(), masters):
                    p.copy_(master)
    assert replay(tmp_path / "r")["clean"]


def test_bfloat16_weights_lose_updates_and_decay(tmp_path):
    path = mutants.train(tmp_path / "r", lambda m: torch.optim.AdamW(m.parameters(), lr=1e-4), dtype=torch.bfloat16)
    result = replay(path)["a"]
    assert result["clean"] and sum(w["lost_updates"] for w in result["weights"]) > 500
    assert any("has no effect" in note for note in result["notes"])


def test_fused_sgd_leaves_bfloat16_weights_as_they_are(tmp_path):
    """A fault of PyTorch on CPU (2.13): the fused kernel does not write bfloat16 weights back. The replay says so."""
    weight = torch.nn.Parameter(torch.ones(64, 64, dtype=torch.bfloat16))
    optimizer = torch.optim.SGD([weight], lr=0.1, fused=True)
    with OptimizerRecord(tmp_path / "r", optimizer):
        for _ in range(3):
            weight.grad = torch.ones_like(weight)
            optimizer.step()
    if float(weight.detach()[0, 0]) != 1:
        pytest.skip("this PyTorch has a fused SGD that updates")
    assert replay(tmp_path / "r", code=1)["a"]["findings"][0]["term"] == "not_updated"


def test_clipping_is_held_to_what_was_declared(tmp_path):
    adamw = make("AdamW")
    clipped = mutants.train(tmp_path / "clipped", adamw, clip=0.05)
    assert replay(clipped)["clean"]
    (finding,) = replay(clipped, "--clip-grad", "1.0", code=1)["a"]["findings"]
    assert finding["term"] == "clip_threshold" and "have the norm 0.0499999" in finding["says"]
    free = mutants.train(tmp_path / "free", adamw)
    (finding,) = replay(free, "--clip-grad", "0.01", code=1)["a"]["findings"]
    assert finding["term"] == "clip_threshold"


def test_two_sides_say_where_they_differ(tmp_path):
    a = mutants.train(tmp_path / "a", make("AdamW"))
    b = mutants.train(tmp_path / "b", lambda m: mutants.AdamW(m.parameters(), weight_decay=0.1))
    result = replay(a, b, code=1)
    assert result["a"]["clean"] and result["b"]["clean"]
    told = {d["what"]: d["says"] for d in result["differences"]}
    assert "0.bias: A has 0, B has 0.1" in told["weight_decay"]
    assert replay(a, a)["differences"] == []
    scaled = mutants.train(tmp_path / "c", make("AdamW"), scale=4.0)
    assert "times 4" in {d["what"]: d["says"] for d in replay(a, scaled, code=1)["differences"]}["gradient"]


def test_one_step_says_what_it_does_not_show(tmp_path):
    path = mutants.train(tmp_path / "r", make("SGD", "dampening"), steps=1)
    result = replay(path)["a"]
    assert any("one step does not show dampening" in note for note in result["notes"])


def test_recording_does_not_change_the_training(tmp_path):
    def weights(record):
        torch.manual_seed(0)
        model = mutants.model_of()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        hooks = OptimizerRecord(tmp_path / "r", optimizer, model) if record else None
        for _ in range(5):
            model(torch.randn(16, 24)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if hooks:
            hooks.remove()
        return [p.detach() for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(weights(False), weights(True)))
    steps = sorted(p.name for p in (tmp_path / "r" / "rank0" / "optimizer0").iterdir())
    assert steps == ["step0", "step1", "step2"]


def test_a_record_that_cannot_be_written_ends_and_the_training_goes_on(tmp_path):
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    OptimizerRecord(tmp_path / "r", optimizer)
    (tmp_path / "r" / "rank0").write_text("in the way")
    weight.grad = torch.ones(3)
    with pytest.warns(RuntimeWarning, match="the record of the optimizer ends"):
        optimizer.step()
    optimizer.step()
    assert math.isclose(float(weight.detach()[0]), 0.0)


def test_every_optimizer_of_a_process(tmp_path):
    first, second = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    with OptimizerRecord(tmp_path / "r", steps=[0]):
        for weight in (first, second):
            weight.grad = torch.ones(3)
            torch.optim.SGD([weight], lr=0.5).step()
    result = replay(tmp_path / "r")
    assert result["name"] == "rank0/optimizer0" and [more["name"] for more in result["more"]] == ["rank0/optimizer1"]
    assert result["clean"] and result["unread"] == []
    assert replay(tmp_path / "r" / "rank0" / "optimizer1")["clean"]


def test_the_worst_of_several_optimizers_decides(tmp_path):
    path = mutants.train(tmp_path / "r", make("AdamW"))
    faulty = mutants.train(tmp_path / "f", make("AdamW", "swapped_betas"))
    shutil.copytree(faulty / "rank0" / "optimizer0", path / "rank0" / "optimizer1")
    result = replay(path, code=1)
    assert result["a"]["clean"] and not result["clean"]
    assert [finding["term"] for finding in result["more"][0]["a"]["findings"]] == ["swapped_betas"]
    told = run(["optimizer_replay", path], check=False).stdout
    assert "1 of 2 optimizers do what their hyperparameters say" in told
    # One that the other side lacks is not judged, and that is no success.
    shutil.rmtree(path / "rank0" / "optimizer1")
    shutil.copytree(path, tmp_path / "b")
    shutil.copytree(path / "rank0" / "optimizer0", path / "rank0" / "optimizer1")
    (why,) = replay(path, tmp_path / "b", code=5)["unread"]
    assert "has no partner on the other side" in why


def test_bad_input_is_one_line(tmp_path):
    path = mutants.train(tmp_path / "r", make("AdamW"), steps=1) / "rank0" / "optimizer0"
    (tmp_path / "empty").mkdir()
    for args, code, said in (
        (["empty"], 3, "holds no step0, step1, ..."),
        (["absent"], 3, "absent"),
        (["r", "--set", "speed=1"], 2, "speed is no hyperparameter"),
        (["r", "--set", "lr"], 2, "is not NAME=VALUE"),
        (["r", "--rule", "LBFGS"], 3, "is none of SGD"),
    ):
        done = run(["optimizer_replay", *args], cwd=tmp_path, check=False)
        assert done.returncode == code and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    for name, broken in (("before.safetensors", b"\x08"), ("optimizer.json", b"{}"), ("optimizer.json", b"[")):
        whole = (path / "step0" / name).read_bytes()
        (path / "step0" / name).write_bytes(broken)
        assert run(["optimizer_replay", path], check=False).returncode == 3, name
        (path / "step0" / name).write_bytes(whole)


@pytest.mark.parametrize("fault", ["", "swapped_betas"])
def test_a_step_out_of_checkpoints(tmp_path, fault):
    model = mutants.model_of()
    optimizer = mutants.AdamW(model.parameters(), lr=1e-2)
    optimizer.fault = fault
    for step in range(3):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / f"{step}.pt")
        optimizer.zero_grad()
        model(torch.randn(16, 24)).square().mean().backward()
        torch.save({name: p.grad for name, p in model.named_parameters()}, tmp_path / f"grad{step}.pt")
        optimizer.step()
    steps = [tmp_path / "1.pt", tmp_path / "2.pt", "--grads", tmp_path / "grad1.pt"]
    told = ["--rule", "AdamW", "--set", "lr=1e-2", "--set", "weight_decay=0.1"]
    result = replay(*steps, *told, code=1 if fault else 0)
    assert [f["term"] for f in result["a"]["findings"]] == ([fault] if fault else [])
    assert len(result["a"]["weights"]) == 6
    done = run(["optimizer_replay", *steps], check=False)
    assert done.returncode == 2 and "name it with --rule" in done.stderr
    done = run(["optimizer_replay", *steps[:3], tmp_path / "1.pt", *told], check=False)
    assert done.returncode in (0, 1)  # weights taken for gradients: numbers, if wrong ones


def test_the_summary_in_both_languages(tmp_path):
    path = mutants.train(tmp_path / "r", make("AdamW", "eps_inside_root", eps=1e-6))
    told = run(["optimizer_replay", path], check=False, env={"LC_ALL": "C.UTF-8"}).stdout
    assert "wrong term: eps_inside_root" in told and "scope: all weights" in told
    chinese = run(["optimizer_replay", path], check=False, env={"LC_ALL": "zh_CN.UTF-8"}).stdout
    assert "错误的项：eps_inside_root" in chinese and "eps 加在根号内" in chinese and "wrong" not in chinese


SCRIPT = """
import sys
import torch
torch.manual_seed(3), torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=float(sys.argv[1]), fused=True)
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
print(sum(p.double().sum() for p in model.parameters()).item().hex())
"""


def test_recorded_without_a_line_in_the_script(tmp_path):
    """`msprobe run --save-optimizer`: names of the model, the norm that is clipped to, the steps asked for, and the same bits."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    bare = subprocess.run([*command, "1e-8"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    done = run(["run", "--save-optimizer", "a", "--", *command, "1e-8"], cwd=tmp_path)
    assert done.stdout == bare
    run(["run", "--save-optimizer", "b", "--step", "1-3", "--", *command, "1e-3"], cwd=tmp_path)
    assert sorted(p.name for p in (tmp_path / "a/rank0/optimizer0").iterdir()) == ["step0", "step1", "step2"]
    assert sorted(p.name for p in (tmp_path / "b/rank0/optimizer0").iterdir()) == ["step1", "step2", "step3"]
    told = json.loads((tmp_path / "a/rank0/optimizer0/step0/optimizer.json").read_text())
    assert told["clip_grad"] == 0.25 and told["groups"][0]["weights"] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert replay(tmp_path / "a")["clean"]
    result = replay(tmp_path / "a", tmp_path / "b", code=1)
    assert "eps" in {d["what"] for d in result["differences"]} and not result["a"]["findings"]

"""msprobe optimizer_replay: what an update does is judged, not what its class is called; a formula that is not known is no fault."""

import json

import optimizer_mutants as mutants
import pytest
import torch
from graph_cases import run
from msprobe.pytorch import OptimizerRecord
from transformers.optimization import Adafactor


def replay(*args, code=0):
    """The result as JSON."""
    done = run(["optimizer_replay", *args, "--json"], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": 3e-3, "scale_parameter": False, "relative_step": False},
        {"lr": 3e-3, "scale_parameter": True, "relative_step": False, "weight_decay": 0.1},
        {"scale_parameter": True, "relative_step": True, "warmup_init": True},
        {"lr": 3e-3, "scale_parameter": False, "relative_step": False, "beta1": 0.8, "clip_threshold": 0.5},
    ],
    ids=str,
)
def test_adafactor_of_transformers_is_clean(tmp_path, settings):
    def made(model):
        optimizer = Adafactor(model.parameters(), **settings)
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] or 0.0  # relative steps do not look at it
        return optimizer

    result = replay(mutants.train(tmp_path / "r", made))
    assert result["clean"] and result["a"]["unjudged"] == []


class AdamW(mutants.AdamW):
    """The name is that of the published rule. `counts`: where its one count of steps goes up."""

    counts = "weights"

    def step(self, closure=None):
        """One update."""
        self.count = getattr(self, "count", 0)
        for group in self.param_groups:
            self.count += self.counts == "groups"
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.count += self.counts == "weights"
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                own = state["step"]
                state["step"] = torch.tensor(self.count - 1.0)
                with torch.no_grad():
                    self.update(p, p.grad, state, group)
                state["step"] = own + 1


@pytest.mark.parametrize("counts", ["weights", "groups"])
def test_one_count_for_all_is_named(tmp_path, counts):
    def made(model):
        optimizer = AdamW(mutants.groups_of(model, 0.1))
        optimizer.counts = counts
        return optimizer

    (finding,) = replay(mutants.train(tmp_path / "r", made), code=1)["a"]["findings"]
    assert finding["term"] == "step_count" and f"for all {counts}" in finding["says"]


class Master(torch.optim.Optimizer):
    """SGD of bfloat16 weights in float32."""

    def __init__(self, params, keeps):
        super().__init__(params, {"lr": 0.02, "momentum": 0.0, "weight_decay": 0.0})
        self.keeps = keeps

    @torch.no_grad()
    def step(self, closure=None):
        """One update."""
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["fp32"] = p.float().clone()
            after = state["fp32"] - self.param_groups[0]["lr"] * p.grad.float()
            if self.keeps:
                state["fp32"].copy_(after)
            p.copy_(after)


Master.__name__ = "SGD"


def test_a_copy_that_is_never_updated_is_named_and_nothing_is_rounded_at_random(tmp_path):
    path = mutants.train(tmp_path / "r", lambda m: Master(m.parameters(), keeps=False), dtype=torch.bfloat16)
    (finding,) = replay(path, code=1)["a"]["findings"]
    assert finding["term"] == "master_not_updated"
    assert "at random" not in run(["optimizer_replay", path], check=False).stdout


class StableAdamW(torch.optim.AdamW):
    """A relative of AdamW whose formula nobody told."""

    @torch.no_grad()
    def step(self, closure=None):
        """One update, another half of it."""
        before = [p.clone() for group in self.param_groups for p in group["params"]]
        super().step(closure)
        for p, was in zip((p for group in self.param_groups for p in group["params"]), before):
            moved = p - was
            p.copy_(was + moved / (1 + moved.abs().sqrt()))


def test_the_formula_of_a_relative_is_not_judged(tmp_path):
    path = mutants.train(tmp_path / "r", lambda m: StableAdamW(m.parameters(), lr=1e-2))
    result = replay(path, code=5)
    assert result["a"]["findings"] == [] and "StableAdamW" in result["a"]["unjudged"][0]
    assert result["judgement"]["kind"] == "cannot_say"
    # Under the name of a published rule the same is a fault.
    StableAdamW.__name__ = "AdamW"
    path = mutants.train(tmp_path / "s", lambda m: StableAdamW(m.parameters(), lr=1e-2))
    StableAdamW.__name__ = "StableAdamW"
    assert [f["term"] for f in replay(path, code=1)["a"]["findings"]] == [""]


def clipped(path, before):
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(10, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with OptimizerRecord(path, optimizer, model, steps=range(3)):
        for i in range(3):
            optimizer.zero_grad()
            (7 * model(torch.randn(8, 10, generator=torch.Generator().manual_seed(i)))).square().mean().backward()
            if before:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    return path


def test_clipping_that_one_side_lacks_is_named(tmp_path):
    result = replay(clipped(tmp_path / "a", False), clipped(tmp_path / "b", True), code=1)
    (says,) = [d["says"] for d in result["differences"] if d["what"] == "clip_grad"]
    assert "B clips its gradients to the norm 0.5" in says
    result = replay(clipped(tmp_path / "c", True), clipped(tmp_path / "d", True))
    assert not result["differences"]


def test_a_state_that_one_side_keeps_in_bfloat16_is_named(tmp_path):
    def made(coarse):
        class Coarse(torch.optim.AdamW):
            def step(self, closure=None):
                super().step(closure)
                for state in self.state.values() if coarse else ():
                    state["exp_avg"].copy_(state["exp_avg"].bfloat16())  # in float32, with the digits of bfloat16

        Coarse.__name__ = "AdamW"
        return lambda m: Coarse(m.parameters(), lr=1e-3)

    a, b = (mutants.train(tmp_path / side, made(side == "a")) for side in "ab")
    done = json.loads(run(["optimizer_replay", a, b, "--json"], check=False).stdout)
    (says,) = [d["says"] for d in done["differences"] if d["what"] == "state_dtype"]
    assert "exp_avg are kept in bfloat16 by A and in float32 by B" in says
    (finding,) = done["a"]["findings"]
    assert finding["term"] == "state_dtype" and "keeps only the digits of bfloat16" in finding["says"]
    assert done["b"]["clean"]

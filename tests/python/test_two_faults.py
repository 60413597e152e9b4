"""A fault that cannot come from the first one is named beside it, and one between two steps is placed there."""

import json
import subprocess

import pytest
from launch import HERE, run_python


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    root = tmp_path_factory.mktemp("two_faults")
    for kind in ("same", "momentum", "eps", "average", "rate", "decay", "kept", "halved"):
        run_python([HERE / "two_faults_scenario.py", kind, root / kind], warm=("torch", "msprobe.pytorch"))
    return root


@pytest.fixture(scope="module")
def modules_only(tmp_path_factory):
    """Level L0: no op of the optimizer is recorded."""
    root = tmp_path_factory.mktemp("modules_only")
    for kind in ("same", "rate", "halved"):
        run_python([HERE / "two_faults_scenario.py", kind, root / kind, "L0"], warm=("torch", "msprobe.pytorch"))
    return root


def compared(dumps, kind, out):
    done = subprocess.run(
        ["msprobe", "compare", dumps / kind, dumps / "same", "-o", out, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)["verdict"]


def test_an_argument_without_effect_in_front_of_the_first_difference(dumps, tmp_path):
    lines = compared(dumps, "momentum", tmp_path)["text"]["en"]
    assert "Tensor.sum.0.forward" in lines[0] and "Tensor.mean.0.forward" in lines[0]
    also = [line for line in lines if line.startswith("also: ")]
    assert any("critic.1: argument momentum (input.6) is 0.9, in the golden run 0.1" in line for line in also), lines


def test_a_setting_of_the_optimizer_behind_gradients_that_are_not_cut_off(dumps, tmp_path):
    lines = compared(dumps, "eps", tmp_path)["text"]["en"]
    assert "requires a gradient, in the golden run it does not" in lines[0]
    also = [line for line in lines if line.startswith("also: ")]
    assert len(also) == 1 and "argument eps is 1e-05, in the golden run 1e-08" in also[0], lines
    assert "detach()" in lines[-1] and "stop_gradient" in lines[-1]


def test_weights_that_are_written_between_two_steps(dumps, tmp_path):
    story = compared(dumps, "average", tmp_path)
    assert story["origins"][0]["cause"] == "weight" and story["origins"][0]["written_behind_step"] == 0
    lines = story["text"]["en"]
    assert any(line.startswith("before: step 0 is bit-equal to its end") for line in lines), lines
    assert "EMA" in lines[-1]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("rate", "optimizer: argument lr is 0.02, in the golden run 0.01"),
        ("decay", "optimizer: argument weight_decay is 0, in the golden run 0.1"),
        ("halved", "the golden run has no Tensor.__truediv__.0.forward"),
    ],
)
def test_what_a_step_is_given(dumps, tmp_path, kind, said):
    lines = compared(dumps, kind, tmp_path)["text"]["en"]
    assert said in lines[0], lines
    assert not any(line.startswith("also: ") for line in lines), lines


def test_clipped_gradients_that_are_kept(dumps, tmp_path):
    story = compared(dumps, "kept", tmp_path)
    anatomy = story["origins"][0]["anatomy"]
    assert anatomy["kind"] == "accumulated" and "step 0" in "\n".join(story["text"]["en"])
    assert "as clipping left it" in "\n".join(story["text"]["en"])
    assert "zero_grad" in story["text"]["en"][-1]


def test_an_update_that_was_not_recorded(modules_only, tmp_path):
    story = compared(modules_only, "rate", tmp_path)
    first = story["origins"][0]
    assert first["cause"] == "weight" and first["written_behind_step"] == 0 and first["update_unseen"]
    assert len(story["origins"]) == 1 and first["weights"] > 5
    assert "step 0 and its gradients are bit-equal" in "\n".join(story["text"]["en"])
    assert "compare the optimizers" in story["text"]["en"][-1]


def test_a_gradient_that_comes_in_is_named_before_those_of_weights(modules_only, tmp_path):
    story = compared(modules_only, "halved", tmp_path)
    assert story["origins"][0]["cause"] == "input" and "a gradient, is 0.5 times" in story["text"]["en"][0]

"""What differs in the loss, in a step or behind it is named as that; another form of the same is no fault."""

import json
import subprocess

import pytest
from launch import HERE, run_python

OF_L1 = {
    "all_decay": "the optimizer decays 12 parameters, that of the golden run 4",
    "other_groups": "the optimizer takes its parameters in another order",
    "head_twice": "parameters are updated 14 times in one step, in the golden run 12 times",
    "average": "argument input.1 is 0.8, in the golden run 0.9",
    "head_clipped": "gradients are clipped by the norm of 2 of them, in the golden run of 12",
    "frozen": "its weight (input.1) requires no gradient, in the golden run it does",
    "term": "the target lacks Tensor.logsumexp.0.forward",
    "mask": "of mask (input.1) of Tensor.masked_fill.0.forward differs: statistics do not show",
    "weights_and_eps": "argument eps (input.4) is 0.001, in the golden run 1e-05",
}
OF_L0 = {
    "own_parameter": "mixers.0.decay is 1.1 times the golden value",
    "other_order": "head: its input.0, a gradient, differs",
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    root = tmp_path_factory.mktemp("step_forms")
    for level, kinds in (("L1", ("lists", "masked_loss", *OF_L1)), ("L0", OF_L0)):
        for kind in ("same", *kinds):
            run_python(
                [HERE / "step_forms_scenario.py", kind, level, root / level / kind], warm=("torch", "msprobe.pytorch")
            )
    return root


def story(dumps, level, kind, out):
    command = ["msprobe", "compare", dumps / level / kind, dumps / level / "same", "-o", out, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)["verdict"]


@pytest.mark.parametrize("level", ["L1", "L0"])
def test_each_kind_is_named(dumps, level, tmp_path):
    for kind, cause in (OF_L1 if level == "L1" else OF_L0).items():
        lines = story(dumps, level, kind, tmp_path)["text"]["en"]
        assert cause in lines[0], (kind, lines)
        assert "another batch" not in lines[0]


def test_the_second_of_two_faults_is_named(dumps, tmp_path):
    lines = story(dumps, "L1", "weights_and_eps", tmp_path)["text"]["en"]
    assert any("its input.weight differs by" in line for line in lines if line.startswith("also: ")), lines


@pytest.mark.parametrize("kind", ["lists", "masked_loss"])
def test_another_form_of_the_same_is_no_fault(dumps, kind, tmp_path):
    verdict = story(dumps, "L1", kind, tmp_path)
    assert verdict["outcome"] in ("equal", "round_off", "unknown"), verdict["text"]["en"]
    assert verdict["origins"] == [], verdict["text"]["en"]

"""What differs in how two trainings step is named as that, with modules in the dump and without."""

import json
import subprocess

import pytest
from launch import HERE, run_python

NAMED = {
    "not_cleared": ("that of step 0 added up", "zero_grad"),
    "clipped_by_norm": ("clips its gradients by their norm", "gradient clipping"),
    "clipped_by_value": ("cut off outside of -0.001 to 0.001", "clip_grad_value_"),
    "sgd": ("the optimizer steps by SGD, that of the golden run by Adam", "parameter groups"),
    "other_function": (
        "the target calls Functional.gelu.0.forward where the golden run calls Functional.silu.0.forward",
        "code of both runs",
    ),
}
OF_L1 = {
    "frozen": ("its weight (input.1) requires no gradient, in the golden run it does", "requires_grad_()"),
    "groups": ("the optimizer decays 7 parameters, that of the golden run 18", "parameter groups"),
    "exchanged": ("its weight (input.1), a parameter, differs", "names in the checkpoint"),
}
OF_MIX = {
    "frozen": ("1.up.weight", "the optimizers were given"),
    "groups": ("argument lr * weight_decay is 0, in the golden run 1e-05", "configurations"),
    "exchanged": ("0.gate.weight and 0.up.weight are exchanged before they are used", "names in the checkpoint"),
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    root = tmp_path_factory.mktemp("step_kinds")
    for level, others in (("L1", OF_L1), ("mix", OF_MIX)):
        for kind in ("same", *NAMED, *others):
            run_python(
                [HERE / "step_kinds_scenario.py", kind, level, root / level / kind], warm=("torch", "msprobe.pytorch")
            )
    return root


def story(dumps, level, target, golden, out):
    done = subprocess.run(
        ["msprobe", "compare", dumps / level / target, dumps / level / golden, "-o", out, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)["verdict"]


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_each_kind_is_named(dumps, level, tmp_path):
    assert story(dumps, level, "same", "same", tmp_path)["outcome"] == "equal"
    for kind, (cause, advice) in {**NAMED, **(OF_L1 if level == "L1" else OF_MIX)}.items():
        lines = story(dumps, level, kind, "same", tmp_path)["text"]["en"]
        assert cause in "\n".join(lines), (kind, lines)
        assert advice in lines[-1], (kind, lines)


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_the_other_side_is_named_alike(dumps, level, tmp_path):
    lines = story(dumps, level, "same", "clipped_by_norm", tmp_path)["text"]["en"]
    assert "only the golden run clips its gradients" in lines[0]
    assert not any(line.startswith("also: ") for line in lines), lines
    lines = story(dumps, level, "same", "sgd", tmp_path)["text"]["en"]
    assert "the optimizer steps by Adam, that of the golden run by SGD" in lines[0]

"""DeepSpeed, FSDP and Megatron train to the same bits with capture on, and gradients are those of the process.

DeepSpeed is looked for in this interpreter and in the one that MSPROBE_DEEPSPEED_PYTHON names; megatron-core has the environment
of tests/megatron.
"""

import importlib.util
import json
import math
import os
import sys
from pathlib import Path

import pytest
from launch import REPO, run_python

pytestmark = pytest.mark.deep

PACKAGES = {
    **{f"zero{stage}": ("deepspeed", "MSPROBE_DEEPSPEED_PYTHON") for stage in (1, 2, 3)},
    **{kind: ("torch", "MSPROBE_PYTHON") for kind in ("fsdp1", "fsdp2")},
    "megatron": (),
}
WAYS = [f"{level}:{kind}" for level in ("L0", "L1", "mix") for kind in ("statistics", "md5", "tensor")]
STEPS = 3


def python_with(stack, request):
    if stack == "megatron":
        return request.getfixturevalue("megatron_python")
    package, variable = PACKAGES[stack]
    if variable in os.environ:
        return os.environ[variable]
    if importlib.util.find_spec(package.split(".")[0]) is None:
        pytest.skip(f"{package} is not installed; {variable} may name an interpreter that has it")
    return sys.executable


@pytest.mark.parametrize("stack", PACKAGES)
def test_a_training_whose_parameters_move(tmp_path, stack, request):
    script = REPO / "tests" / "stacks" / "train_sharded.py"
    python = python_with(stack, request)
    run_python([script, tmp_path, stack, ",".join(WAYS)], python=python, cwd=tmp_path, timeout=900, fresh=True)
    for rank in (0, 1):
        bare = json.loads((tmp_path / f"bare_{rank}.json").read_text())
        for way in WAYS:
            told = json.loads((tmp_path / f"{way}_{rank}.json").read_text())
            assert told["bits"] == bare["bits"], way
            if way.startswith("L1"):
                assert not told["gradients"]
                continue
            assert told["gradients"].keys() == bare["alone"].keys(), way
            for name, items in told["gradients"].items():
                assert len(items) == STEPS
                assert all(items)
                for key, number in zip(("Max", "Min", "Mean", "Norm"), bare["alone"][name]):
                    assert math.isclose(items[0][key], number, rel_tol=1e-5, abs_tol=1e-6), (way, name, key)
    assert not list(Path(tmp_path).glob("*/step*/rank*/dump_error_info.log"))

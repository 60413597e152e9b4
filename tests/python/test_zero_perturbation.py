"""The tool does not change the run: every number a training computes is equal, bit for bit, with and without it."""

import json

import pytest
from launch import HERE, WARM, run_python

# Of all of these each of more models is trained in tests/conformance/test_bits.py.
VARIANTS = [
    ("statistics", "L0", ""),
    ("statistics", "L1", ""),
    ("statistics", "mix", ""),
    ("statistics", "mix", "--summary xor --asynchronous"),
    ("structure", "L0", ""),
    ("structure", "mix", ""),
    ("tensor", "mix", "--summary md5"),
    ("tensor", "mix", "--asynchronous"),
]
# Entries a step must have at the least, so that a tool that records nothing does not pass.
MIN_ENTRIES = {
    "llama": {"L0": 80, "L1": 300, "mix": 400},
    "conv": {"L0": 18, "L1": 120, "mix": 140},
    "nested": {"L0": 40, "L1": 65, "mix": 105},
}


def train(model, *options, cwd):
    modules = (*WARM, "transformers.models.llama.modeling_llama")
    output = run_python([HERE / "train_scenario.py", model, *options], cwd=cwd, warm=modules).stdout
    return json.loads(output.split("RESULT")[1])


@pytest.fixture(scope="module")
def without_tool(tmp_path_factory):
    results = {}

    def result(model):
        if model not in results:
            results[model] = train(model, cwd=tmp_path_factory.getbasetemp())
        return results[model]

    return result


# The large model with what does most.
OF_LLAMA = [variant for variant in VARIANTS if variant[1] == "mix" and variant[2] != "--summary md5"]
CASES = [("llama", *variant) for variant in OF_LLAMA] + [
    (model, *variant) for model in ("conv", "nested") for variant in VARIANTS
]


@pytest.mark.parametrize("model, task, level, options", CASES)
def test_training_computes_the_same_bits(model, task, level, options, without_tool, tmp_path):
    out = tmp_path / "dump"
    with_tool = train(model, "--task", task, "--level", level, "--out", out, *options.split(), cwd=tmp_path)
    expected = without_tool(model)
    for number, (ours, plain) in enumerate(zip(with_tool["steps"], expected["steps"])):
        for what in plain:
            assert ours[what] == plain[what], f"{what} of step {number}"
    assert with_tool == expected

    for step in (0, 1):
        directory = out / f"step{step}" / "rank0"
        construct = json.loads((directory / "construct.json").read_text())
        data = json.loads((directory / "dump.json").read_text())["data"]
        if task == "structure":
            assert data == {}
            assert len(construct) >= MIN_ENTRIES[model][level] // 2
        else:
            assert len(data) >= MIN_ENTRIES[model][level]
        assert not (directory / "dump_error_info.log").exists()
        if task == "tensor":
            assert len(list((directory / "dump_tensor_data").iterdir())) >= MIN_ENTRIES[model][level]


def test_the_scenario_itself_is_repeatable(without_tool, tmp_path):
    assert train("nested", cwd=tmp_path) == without_tool("nested")

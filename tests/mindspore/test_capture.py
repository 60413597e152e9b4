"""What is recorded of MindSpore: values, names, filters, tasks, and what must not be disturbed."""

import json
import pathlib

import numpy as np
import pytest
from launch import run_mindspore

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def capture(tmp_path_factory, mindspore_python):
    """capture(model, config, steps) -> (entries of step 0, its directory, what the script printed)."""

    def run(model, steps=1, **config):
        dump = tmp_path_factory.mktemp(model) / "dump"
        command = [mindspore_python, HERE / "capture_scenario.py", model, dump, json.dumps(config), str(steps)]
        done = run_mindspore(command, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        directory = dump / "step0" / "rank"
        path = directory / "dump.json"
        return json.loads(path.read_text())["data"] if path.exists() else {}, directory, done

    return run


@pytest.fixture(scope="module")
def mix_tensor(capture):
    return capture("small", task="tensor", level="mix")


def result_of(done):
    return json.loads(done.stdout.split("RESULT")[1])


def array(directory, name):
    return np.load(directory / "dump_tensor_data" / f"{name}.npy")


def test_gradients_are_those_of_the_training(mix_tensor):
    entries, directory, done = mix_tensor
    grads = result_of(done)["grads"]
    assert set(grads) == {"first.weight", "first.bias", "second.weight", "second.bias"}
    for name, expected in grads.items():
        cell, param = name.split(".")
        assert array(directory, f"Cell.{cell}.Dense.parameters_grad.0.{param}").tolist() == expected


def test_statistics_are_those_of_the_saved_tensors(mix_tensor):
    entries, directory, _ = mix_tensor
    seen = 0
    for entry in entries.values():
        for item in [*entry.get("input_args", []), *entry.get("output", []), *entry.get("input", [])]:
            if not isinstance(item, dict) or "data_name" not in item:
                continue
            value = np.load(directory / "dump_tensor_data" / item["data_name"]).astype(np.float64)
            assert list(value.shape) == item["shape"]
            assert item["Max"] == value.max() and item["Min"] == value.min()
            # The statistics of a single number are the number itself, also where it is negative.
            norm = np.linalg.norm(value) if value.shape else float(value)
            assert item["Norm"] == pytest.approx(norm, rel=1e-6)
            seen += 1
    assert seen > 40


def test_input_gradient_of_a_cell_is_its_own_share(mix_tensor):
    """`h` is used three times beside and inside `second`: what leaves that Cell is what came through it alone."""
    entries, directory, _ = mix_tensor
    weight = array(directory, "Cell.second.Dense.forward.0.parameters.weight")
    received = array(directory, "Cell.second.Dense.backward.0.input.0")
    passed_on = array(directory, "Cell.second.Dense.backward.0.output.0")
    np.testing.assert_allclose(passed_on, received @ weight, rtol=1e-5)


def test_what_a_cell_uses_and_returns_has_no_gradient_of_its_own(capture):
    """One tensor is input and output: its gradient holds both shares, so neither is claimed."""
    entries, _, _ = capture("returning", task="statistics", level="L0")
    entry = entries["Cell.biased.Biased.backward.0"]
    assert entry["input"][0]["shape"] == [3, 4] and entry["input"][1] is None
    assert entry["output"][0]["shape"] == [3, 4] and entry["output"][1] is None


def test_primitives_pass_gradients_on_in_the_order_of_their_arguments(mix_tensor):
    entries, _, _ = mix_tensor
    forward = entries["Primitive.bias_add.BiasAdd.0.forward"]["input_args"]
    backward = entries["Primitive.bias_add.BiasAdd.0.backward"]["output"]
    assert [t["shape"] for t in backward] == [t["shape"] for t in forward]


def test_each_place_of_one_tensor_shows_its_own_share(capture):
    _, directory, _ = capture("shared", task="tensor", level="L1")
    value = array(directory, "Tensor.__mul__.0.forward.input.0")
    ones = np.ones_like(value)
    for name, shares in {
        "Tensor.__mul__.0": (value, value),
        "Functional.sub.0": (ones, -ones),
        "Primitive.mul.Mul.0": (value, value),
        "Functional.addcmul.0": (ones, 2 * value, 2 * value),
    }.items():
        for place, share in enumerate(shares):
            np.testing.assert_array_equal(array(directory, f"{name}.backward.output.{place}"), share)


def test_structure(mix_tensor):
    entries, directory, _ = mix_tensor
    construct = json.loads((directory / "construct.json").read_text())
    stack = json.loads((directory / "stack.json").read_text())
    assert construct["Primitive.matmul.MatMul.0.forward"] == "Cell.first.Dense.forward.0"
    assert construct["Primitive.matmul.MatMul.0.backward"] == "Cell.first.Dense.backward.0"
    assert {name for names, _ in stack.values() for name in names} == {
        n for n in entries if n.endswith(("forward", ".0")) and "forward" in n
    }
    frames = [line for _, lines in stack.values() for line in lines]
    assert any("in construct" in line for line in frames) and not any(
        "msprobe/" in line.split(",")[0] for line in frames
    )


@pytest.mark.parametrize("level, prefixes", [("L0", {"Cell"}), ("L1", {"Functional", "Primitive", "Tensor"})])
def test_levels(capture, level, prefixes):
    entries, _, _ = capture("small", level=level)
    assert {name.split(".")[0] for name in entries} == prefixes
    assert any(".backward" in name for name in entries)


@pytest.mark.parametrize(
    "config, wanted, unwanted",
    [
        ({"statistics": {"list": ["chunk"]}}, "Functional.chunk.0.forward", "Cell.act.ReLU.forward.0"),
        ({"statistics": {"data_mode": ["forward"]}}, "Functional.chunk.0.forward", "Functional.chunk.0.backward"),
        ({"statistics": {"data_mode": ["backward"]}}, "Functional.chunk.0.backward", "Functional.chunk.0.forward"),
        (
            {"statistics": {"scope": ["Cell.second.Dense.forward.0", "Cell.second.Dense.forward.0"]}},
            "Cell.second.Dense.forward.0",
            "Cell.first.Dense.forward.0",
        ),
    ],
)
def test_filters(capture, config, wanted, unwanted):
    entries, _, _ = capture("small", level="mix", **config)
    assert wanted in entries and unwanted not in entries


def test_checksums(capture):
    entries, _, _ = capture("small", level="L1", statistics={"summary_mode": "md5"})
    tensors = [t for e in entries.values() for t in e.get("output", []) if isinstance(t, dict) and "shape" in t]
    assert tensors and all(len(t["md5"]) == 8 and "requires_grad" not in t for t in tensors)


def test_in_place_ops_show_their_argument_as_it_was(capture):
    entries, directory, _ = capture("inplace", task="tensor", level="L1")
    before = array(directory, "Tensor.add_.0.forward.input.0")
    np.testing.assert_allclose(array(directory, "Tensor.add_.0.forward.output.0"), before + 1, rtol=1e-6)


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_running_statistics_are_those_that_the_call_found(capture, level):
    entries, directory, _ = capture("normed", steps=2, level=level)
    later = json.loads((directory.parents[1] / "step1" / "rank" / "dump.json").read_text())["data"]
    name = "Cell.norm.BatchNorm1d.forward.0"
    first, second = entries[name]["parameters"], later[name]["parameters"]
    assert first["moving_mean"]["Norm"] == 0 and second["moving_mean"]["Norm"] > 0
    assert first["moving_variance"]["Max"] == first["moving_variance"]["Min"] == 1
    assert list(first) == ["moving_mean", "moving_variance", "gamma", "beta"]


def test_overflow_is_kept_where_it_begins(capture):
    entries, _, _ = capture("overflowing", task="overflow_check", level="L1", overflow_check={"overflow_nums": 1})
    assert list(entries) == ["Functional.log.0.forward"]


def test_dropout_drops(capture):
    entries, directory, _ = capture("dropping", task="tensor", level="L1")
    dropped = array(directory, "Functional.dropout.0.forward.output.0")
    assert (dropped == 0).any() and (dropped != 0).any()


def test_exceptions_are_those_of_the_script(capture):
    entries, directory, done = capture("raising", task="exception_dump", level="L1")
    assert "RAISED of the script" in done.stdout and "Traceback" not in done.stderr


def test_exception_dump_shows_the_op_that_gave_no_result(tmp_path, mindspore_python):
    """The operator fails after its launch, and MindSpore raises that at the end of the forward pass."""
    config = json.dumps({"task": "exception_dump", "level": "L1"})
    command = [mindspore_python, HERE / "capture_scenario.py", "mismatched", tmp_path / "dump", config]
    done = run_mindspore(command, timeout=120)
    assert done.returncode == 1 and "RuntimeError: For 'MatMulExt' op" in done.stderr, done.stderr[-2000:]
    rank = tmp_path / "dump" / "step0" / "rank"
    entries = json.loads((rank / "dump.json").read_text())["data"]
    names = list(entries)
    assert names.index("Tensor.__add__.1.forward") + 1 == names.index("Functional.matmul.0.forward")
    failed = entries["Functional.matmul.0.forward"]
    assert [item["shape"] for item in failed["input_args"]] == [[3, 2], [3, 4]] and "Max" in failed["input_args"][0]
    assert failed["output"] == [None]
    assert "Functional.matmul.0.forward" in (rank / "dump_error_info.log").read_text()


def test_a_full_or_forbidden_directory_does_not_end_the_training(tmp_path, mindspore_python):
    (tmp_path / "file").write_text("")
    command = [mindspore_python, HERE / "capture_scenario.py", "small", tmp_path / "file", json.dumps({"level": "mix"})]
    done = run_mindspore(command, timeout=120)
    assert done.returncode == 0 and "RESULT" in done.stdout
    assert "nothing is recorded in step 0" in done.stderr


@pytest.mark.parametrize(
    "config, text",
    [
        ({"enable_dataloader": True}, "enable_dataloader is for PyTorch"),
        ({"task": "tensor", "tensor": {"bench_path": "/tmp", "summary_mode": "md5"}}, "bench_path"),
    ],
)
def test_what_is_not_here_is_refused(tmp_path, mindspore_python, config, text):
    command = [mindspore_python, HERE / "capture_scenario.py", "small", tmp_path / "dump", json.dumps(config)]
    done = run_mindspore(command, timeout=120)
    assert done.returncode != 0 and text in done.stderr.splitlines()[-1], done.stderr[-500:]

"""Checkpoints that megatron-core itself writes, of one model in several layouts: weights and states are bit-equal."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.deep
HERE = Path(__file__).parent
KINDS = ("fully_reshardable", "dp_reshardable", "dp_zero_gather_scatter")
LAYOUTS = {"tp1": "", "tp2pp2": "tp=2,pp=2", "vpp2": "pp=2,vpp=2", "dp2": "dp=2", "bf16": "tp=2,bf16=1"}


def save(python, out, layout, *formats):
    command = [python, HERE / "save_checkpoints.py", out, *formats, "--layout", layout]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]


def compare(python, a, b, *options):
    command = [python.parent / "msprobe", "ckpt", "compare", a, b, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def assert_equal(result, verdicts=("bit-equal",)):
    assert result["weights"] and {w["verdict"] for w in result["weights"]} <= set(verdicts)
    assert result["only_a"] == result["only_b"] == result["copies_that_differ"] == []
    assert {w["matched_by"] for w in result["weights"]} <= {"name", "role"}


@pytest.fixture(scope="module")
def saved(megatron_python, tmp_path_factory):
    """saved(layout) -> the directory of its checkpoints, which are saved when they are asked for first."""
    root = tmp_path_factory.mktemp("megatron")

    def of(layout):
        if not (root / layout).exists():
            save(megatron_python, root / layout, LAYOUTS[layout], "ranks", *KINDS)
        return root / layout

    return of


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "bf16"])
def test_every_format_of_every_layout(megatron_python, saved, layout):
    for form in ("ranks", *KINDS):
        for options in ((), ("--optimizer",)):
            result = compare(megatron_python, saved("tp1") / "ranks", saved(layout) / form, *options)
            assert_equal(result)
            assert not any("not cut" in note or "are not read" in note for note in result["b"]["notes"])


@pytest.mark.parametrize("layout", ["tp2pp2", "vpp2"])
def test_every_format_against_hugging_face(megatron_python, saved, tmp_path, layout):
    """q, k and v by group, gate and up out of halves."""
    save(megatron_python, tmp_path, "", "hugging")
    for form in ("ranks", *KINDS):
        result = compare(megatron_python, saved(layout) / form, tmp_path / "hugging")
        assert_equal(result)
        assert len(result["weights"]) == 51


def test_weights_in_bf16_with_states_in_fp32(megatron_python, saved):
    for form in KINDS:
        for options in ((), ("--optimizer",)):
            assert_equal(compare(megatron_python, saved("bf16") / "ranks", saved("bf16") / form, *options))
    assert_equal(compare(megatron_python, saved("tp1") / "ranks", saved("bf16") / "ranks"), ("rounded", "equal"))


def test_experts(megatron_python, tmp_path):
    for name, layout in (("one", "experts=4"), ("two", "experts=4,ep=2")):
        save(megatron_python, tmp_path / name, layout, "ranks", "fully_reshardable")
    for options in ((), ("--optimizer",)):
        first = tmp_path / "one" / "ranks"
        for other in ("one/fully_reshardable", "two/ranks", "two/fully_reshardable"):
            assert_equal(compare(megatron_python, first, tmp_path / other, *options))

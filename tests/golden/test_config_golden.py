"""Logs of verl and slime: what mindstudio-probe's config_check wrote of them, byte by byte."""

import pytest
from graph_cases import case_names, golden_set, run_case

CASES = ["cfg_slime", "cfg_verl_cmp", "cfg_verl_verify"]
CHECKPOINTS = ["cfg_ckpt_problem", "cfg_ckpt_problem1"]  # of directories


def test_every_case_is_judged():
    assert {*CASES, *CHECKPOINTS} == case_names("cfg_")


@pytest.mark.parametrize("case", CASES)
def test_agrees(case, tmp_path):
    run_case(case, tmp_path)
    want = golden_set() / "expected" / case / "out"
    assert {p.name for p in want.iterdir()} == {p.name for p in tmp_path.iterdir()}
    for path in want.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name

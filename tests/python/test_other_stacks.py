"""The checklist over other pairs of stacks than those its rules were written with: DeepSpeed and verl among them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from graph_cases import find_command
from launch import REPO

FILES = REPO / "tests" / "stacks"
SIDES = {
    "hf": (("hf_deepspeed.sh", "qwen_config.json", "ds_config.json"), ("megatron_qwen.sh",)),
    "verl": (("verl_sft.sh", "qwen_config.json"), ("mindformers_qwen.yaml",)),
}


class Planted(NamedTuple):
    rule: str
    verdict: str
    pair: str
    file: str
    old: str
    new: str


def all_planted():
    lines = (FILES / "planted.txt").read_text().splitlines()
    return [Planted(*(part.strip() for part in line.split("|"))) for line in lines if line and line[0] != "#"]


def verdicts(where, pair, command=None):
    target, golden = ([str(Path(where) / name) for name in side] for side in SIDES[pair])
    done = subprocess.run(
        [command or find_command(), "config_check", "-tp", *target, "-gp", *golden, "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    return {finding["rule"]: finding for finding in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize("pair", SIDES)
def test_nothing_fails_of_an_aligned_pair(pair):
    assert [f for f in verdicts(FILES, pair).values() if f["verdict"] == "fail"] == []


@pytest.mark.parametrize("pair", SIDES)
def test_each_planted_mismatch_is_found(tmp_path, pair):
    missed, seen, aligned = [], 0, verdicts(FILES, pair)
    for number, fault in enumerate(all_planted()):
        if fault.pair != pair:
            continue
        where = tmp_path / str(number)
        shutil.copytree(FILES, where)
        text = (where / fault.file).read_text()
        assert fault.old in text, fault
        (where / fault.file).write_text(text.replace(fault.old, fault.new, 1))
        assert aligned.get(fault.rule, {}).get("verdict") not in (fault.verdict, "fail"), fault
        found = verdicts(where, pair).get(fault.rule, {"verdict": "nothing"})
        seen += 1
        if found["verdict"] != fault.verdict:
            missed.append((fault.rule, fault.new, found["verdict"]))
    assert missed == [] and seen >= 10

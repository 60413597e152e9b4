"""msprobe config_check over one training in every stack of tests/checks/matrix.txt: each two are aligned, and each change is named alone."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from config_matrix import BASE, CHANGES, WARN, stacks, used, write
from graph_cases import find_command

STACKS = stacks()
# Models of another kind than the others': their sizes are not those of a LLaMA.
OTHER_MODELS = {"nanogpt": ("structure.",), "fairseq": ("structure.tied_embeddings",)}
HUBS = ("megatron", "transformers", "own-yaml")


def verdicts(target, golden, change=None):
    """Of a pair: the verdict of each rule. The target may have a change."""
    training = dict(BASE)
    if change:
        training[change] = CHANGES[change][0]
    with TemporaryDirectory() as folder:
        sides = [
            write(Path(folder) / side, STACKS[name], t)
            for side, name, t in (("a", target, training), ("b", golden, BASE))
        ]
        command = [
            find_command(),
            "config_check",
            "-tp",
            *sides[0],
            "-gp",
            *sides[1],
            "--json",
            "-o",
            str(Path(folder) / "out"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 1), (target, golden, change, done.stderr)
    return {finding["rule"]: finding for finding in json.loads(done.stdout)["findings"]}


def failing(found, words=("fail",)):
    return {rule for rule, finding in found.items() if finding["verdict"] in words}


def false_fails(pair):
    allowed = tuple(beginning for name in pair for beginning in OTHER_MODELS.get(name, ()))
    return {(*pair, rule) for rule in failing(verdicts(*pair)) if not rule.startswith(allowed or ("-",))}


def wrong(case):
    """What is not as it should be of a change: it is not named, or something else is that an aligned pair does not have."""
    target, golden, change = case
    found, aligned = verdicts(target, golden, change), verdicts(target, golden)
    rules = CHANGES[change][1]
    named = failing(found, ("fail", "warn") if rules[0] in WARN else ("fail",))
    out = failing(found) - set(rules) - failing(aligned)
    if rules[0] not in named:
        out.add(f"not {rules[0]}")
    return {(*case, rule) for rule in out}


def gather(function, cases):
    with ThreadPoolExecutor(2) as pool:
        return sorted(row for rows in pool.map(function, cases) for row in rows)


def changes_of(target, golden):
    return [(target, golden, change) for change in CHANGES if change in used(STACKS[target]) & used(STACKS[golden])]


def test_the_same_training_in_a_stack_and_in_three_others():
    assert gather(false_fails, [(name, hub) for name in STACKS for hub in HUBS if name != hub]) == []


@pytest.mark.deep
def test_the_same_training_in_each_two_stacks():
    assert gather(false_fails, [(a, b) for a in STACKS for b in STACKS if a <= b]) == []


def test_each_change_within_some_stacks_is_named_alone():
    names = ("trainer-program", "own-program", "llmfoundry")
    assert gather(wrong, [case for name in names for case in changes_of(name, name)]) == []


@pytest.mark.deep
def test_each_change_within_a_stack_is_named_alone():
    # Without a schedule the length of a training is no fault.
    unscheduled = {("lightning", "lightning", "steps"), ("maxtext", "maxtext", "steps")}
    assert gather(wrong, [case for name in STACKS for case in changes_of(name, name) if case not in unscheduled]) == []


@pytest.mark.deep
def test_each_change_across_stacks_is_named_alone():
    unscheduled = {(name, hub, "steps") for name in ("lightning", "maxtext") for hub in HUBS}
    cases = [case for name in STACKS for hub in HUBS if name != hub for case in changes_of(name, hub)]
    assert gather(wrong, [case for case in cases if case not in unscheduled]) == []

"""Programs that call PrecisionDebugger by themselves get from ours what they got from the earlier tool.

Their own code runs under both (programs_scenario.py): verl, sglang, vLLM-Ascend and TorchTitan's step as their wheels have it,
and the calls that the guides of torchtitan-npu, ms-swift, verl-omni and slime put into theirs.
Names of directories, steps, ranks and all entries are compared."""

import json
import sys
from pathlib import Path

import pytest
from launch import HERE, run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from comparison import BITS_OF_FORWARD, Comparison, read
from rules import Rule, rules_of

STAGES = ("actor_compute_log_prob", "ref_compute_log_prob", "compute_values", "critic_update", "actor_update")
VERL = [f"step_{step}/{stage}/step0/rank0" for step in (1, 2) for stage in STAGES]
THREE_STEPS = [f"step{step}/rank0" for step in range(3)]
SLIME = [f"{stage}/step0/rank0" for stage in ("generate_sequences", "old_log_prob", "update")] + ["update/step1/rank0"]

# Program, level, directories, what the program saw.
CASES = {
    "verl": ("verl", "L1", VERL, [0, 0]),
    "verl-mix": ("verl", "mix", VERL, [0, 0]),
    "sglang": ("sglang", "mix", THREE_STEPS, [3, "mix"]),
    "sglang-data-parallel": ("sglang_dp", "L1", [f"step{step}/rank5" for step in range(3)], [3, "L1"]),
    "vllm-ascend": ("vllm_ascend", "mix", THREE_STEPS, [False]),
    "torchtitan": ("titan", "mix", THREE_STEPS, [1]),
    "torchtitan-npu": ("started_once", "mix", ["step0/rank0"], []),
    "ms-swift": ("swift", "mix", THREE_STEPS, [True] * 3),
    "verl-omni": ("omni", "L1", [f"worker/step{step}/rank0" for step in range(2)], ["worker", 0, 1]),
    "slime": ("slime", "mix", SLIME, [True, True, True, 0, 1]),
}
# Where verl is imported, the earlier tool leaves out the first and the last module of each model.
ENDS = r"Module\.(up|down)\.Linear\..*"
OF_VERL = (
    Rule("", "any", "only ours in names", ENDS),
    Rule("", "any", "only ours in construct", ENDS),
    Rule("", "any", "parent", r"(Functional|Tensor|Torch)\..*"),
    Rule("", "any", "stack", r"(Functional|Tensor|Torch)\..*"),
)


# What a tool may lack that a program needs. Without stop() or reset_status() ours still keeps steps and stages apart.
LACKS = [
    ("verl", "L1", VERL, "the place of a stage"),
    ("verl", "L1", VERL, "service"),
    ("sglang", "mix", THREE_STEPS, "step"),
    ("sglang_dp", "L1", CASES["sglang-data-parallel"][2], "rank_id"),
    ("vllm_ascend", "mix", THREE_STEPS, "step"),
    ("vllm_ascend", "mix", THREE_STEPS, "start"),
]


def run(tool, program, level, root, programs, python, lack=()):
    """The same paths for both tools but for the name of `tool`, as stacks name them."""
    out = root / tool
    config = root / f"{tool}.json"
    config.write_text(json.dumps({"task": "statistics", "level": level, "dump_path": str(out), "statistics": {}}))
    options = {} if python is None else {"python": python, "ours": False}
    command = [HERE / "programs_scenario.py", program, programs, config, out, *lack]
    done = run_python(command, cwd=root, check=not lack, **options)
    saw = root / f"{tool}.saw.json"
    return out, json.loads(saw.read_text()) if saw.exists() else done.stderr


def differences(ours, theirs, directories, rules):
    """What is not the same in what two tools wrote, as texts."""
    wrong = []
    for root in (ours, theirs):
        made = sorted(str(path.parent.relative_to(root)) for path in root.rglob("dump.json"))
        if made != sorted(directories):
            wrong.append(f"{root.name}: {made}")
    for directory in [] if wrong else directories:
        comparison = Comparison(read(ours / directory), read(theirs / directory), rules, BITS_OF_FORWARD)
        wrong += [f"{directory}: {text}" for text in comparison.found]
        if len(comparison.ours.data) < 3:
            wrong.append(f"{directory}: hardly anything")
    return wrong


@pytest.fixture(scope="module")
def of_ours(programs, tmp_path_factory):
    """What run() gives for our tool as it is, of a program and a level; each is run once."""
    made = {}

    def result(program, level):
        if (program, level) not in made:
            root = tmp_path_factory.mktemp("ours")
            made[program, level] = run("ours", program, level, root, programs, None)
        return made[program, level]

    return result


@pytest.mark.parametrize("name", CASES)
def test_a_program_gets_what_the_earlier_tool_gave_it(name, tmp_path, programs, of_ours, old_python):
    program, level, directories, saw = CASES[name]
    ours, ours_saw = of_ours(program, level)
    theirs, theirs_saw = run("theirs", program, level, tmp_path, programs, old_python)
    assert ours_saw == theirs_saw == saw
    rules = (*rules_of("programs"), *(OF_VERL if name == "verl-mix" else ()))
    assert differences(ours, theirs, directories, rules) == []


@pytest.mark.deep
@pytest.mark.parametrize(("program", "level", "directories", "lack"), LACKS)
def test_a_tool_that_lacks_something_is_noticed(program, level, directories, lack, tmp_path, programs, of_ours):
    """The dumps differ from those of a whole tool, or the program fails."""
    whole, saw = of_ours(program, level)
    assert differences(whole, whole, directories, rules_of("programs")) == []
    less, saw_of_less = run("less", program, level, tmp_path, programs, None, (lack,))
    assert saw_of_less != saw or differences(less, whole, directories, rules_of("programs"))

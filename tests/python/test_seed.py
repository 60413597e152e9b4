"""seed_all: what it seeds, what it removes, and what it refuses. Each run has an interpreter of its own."""

import pytest
from launch import run_python
from msprobe._capture.config import MsprobeException
from msprobe.pytorch.seed import seed_all

HEADER = """
import os, random
import numpy, torch
import torch.nn.functional as F
from msprobe.pytorch.seed import seed_all

def draw():
    return [random.random(), float(numpy.random.rand()), torch.rand(3).tolist(), random.sample(range(99), 3)]
"""


def run(tmp_path, body):
    script = tmp_path / "script.py"
    script.write_text(HEADER + body)
    return run_python([script], cwd=tmp_path).stdout


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    body = """
seed_all(99); first = draw()
seed_all(99); second = draw()
seed_all(100); other = draw()
assert first == second
assert all(a != b for a, b in zip(first, other))
assert os.environ["PYTHONHASHSEED"] == "100"
assert torch.initial_seed() == 100
seed_all()
assert torch.initial_seed() == 1234
random.seed(1234); numpy.random.seed(1234); torch.manual_seed(1234)
plain = draw()
seed_all()
assert draw() == plain
print("passed")
"""
    assert run(tmp_path, body).endswith("passed\n")


def test_mode_is_deterministic_algorithms(tmp_path):
    body = """
seed_all(mode=True); print(torch.are_deterministic_algorithms_enabled())
seed_all(); print(torch.are_deterministic_algorithms_enabled())
"""
    assert run(tmp_path, body) == "True\nFalse\n"


def test_without_devices_no_device_variable_is_set(tmp_path):
    body = """
seed_all()
names = "HCCL_DETERMINISTIC LCCL_DETERMINISTIC CLOSE_MATMUL_K_SHIFT ATB_LLM_LCOC_ENABLE".split()
assert torch.cuda.is_available() or "CUBLAS_WORKSPACE_CONFIG" not in os.environ
print(any(name in os.environ for name in names))
"""
    assert run(tmp_path, body) == "False\n"


def test_rm_dropout_keeps_everything_and_draws_nothing(tmp_path):
    body = """
import copy, inspect, pickle
from torch.nn.functional import dropout as taken_before
functions = (F.dropout, F.dropout2d, F.dropout3d)
layer = torch.nn.Dropout(0.9)
seed_all(rm_dropout=True)
assert (F.dropout, F.dropout2d, F.dropout3d) == functions and taken_before is F.dropout
x = torch.rand(2, 3, 4, 4, 4)
state = torch.get_rng_state()
for y in (F.dropout(x), F.dropout3d(x, 0.7), F.dropout2d(x[0], p=0.7), layer(x), taken_before(x, 0.9, True), torch.nn.Dropout3d(0.9)(x)):
    assert torch.equal(y, x) or torch.equal(y, x[0])
z = x.clone()
assert F.dropout(z, 0.9, True, True) is z and torch.equal(z, x)
assert torch.equal(state, torch.get_rng_state())
assert pickle.loads(pickle.dumps(F.dropout)) is F.dropout
assert str(inspect.signature(F.dropout)).startswith("(input")
print("passed")
"""
    assert run(tmp_path, body).endswith("passed\n")


def test_dropout_stays_without_rm_dropout(tmp_path):
    assert run(tmp_path, "seed_all(); print(bool((F.dropout(torch.ones(999)) == 0).any()))") == "True\n"


def test_is_enhanced_draws_the_same_at_every_call(tmp_path):
    body = """
seed_all(5)
expected = torch.randn(3)
seed_all(5, is_enhanced=True)
for _ in range(3):
    assert torch.equal(torch.randn(3), expected)
    assert torch.equal(torch.zeros(3).normal_(), expected)
    torch.nn.functional.dropout(torch.ones(7))
assert random.random() == random.random() and random.randint(0, 10**9) == random.randint(0, 10**9)
assert numpy.random.rand() == numpy.random.rand() and numpy.random.sample() == numpy.random.sample()
assert numpy.random.permutation(20).tolist() == numpy.random.permutation(20).tolist()
a, b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
assert torch.equal(a.weight, b.weight)
own = torch.Generator().manual_seed(1)
assert not torch.equal(torch.randn(3, generator=own), torch.randn(3, generator=own)), "the caller's generator is his"
try:
    torch.randn("x")
except TypeError:
    assert torch.equal(torch.randn(3), expected)
# A new seed is a new state, and without is_enhanced everything is as before.
seed_all(6, is_enhanced=True)
assert not torch.equal(torch.randn(3), expected)
seed_all(5)
assert torch.equal(torch.randn(3), expected) and not torch.equal(torch.randn(3), expected)
assert type(torch.randn).__name__ == "builtin_function_or_method" and type(random.random).__name__ != "function"
print("passed")
"""
    assert run(tmp_path, body).endswith("passed\n")


def test_is_enhanced_changes_no_list_of_recorded_functions(tmp_path):
    body = """
from msprobe.pytorch.apis import hooked_apis
names = [api[:2] for api in hooked_apis(torch)]
seed_all(is_enhanced=True)
assert [api[:2] for api in hooked_apis(torch)] == names and ("Torch", "bernoulli") in names
print("passed")
"""
    assert run(tmp_path, body).endswith("passed\n")


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": True}, "seed"),
        ({"mode": 1}, "mode"),
        ({"rm_dropout": "yes"}, "rm_dropout"),
        ({"is_enhanced": None}, "is_enhanced"),
    ],
)
def test_wrong_arguments_are_refused(arguments, name):
    with pytest.raises(MsprobeException) as caught:
        seed_all(**arguments)
    assert str(caught.value).startswith(f"[msprobe] Invalid parameter: {name} is ")
    assert "allowed: " in str(caught.value)


RANDOM_SAVE = """
import random, numpy, torch
from msprobe.pytorch import random_save
random.seed(1); numpy.random.seed(1); torch.manual_seed(1)
plain = [random.random(), float(numpy.random.rand()), torch.rand(2).tolist()]
random.seed(1); numpy.random.seed(1); torch.manual_seed(1)
random_save("out")
def draw(): return [random.random(), float(numpy.random.rand()), torch.rand(2).tolist()]
assert draw() == plain
torch.zeros(2).uniform_(); torch.nn.Linear(2, 2)
for _ in range(2): random.choice([1, 2])
print("passed")
"""


def listed(directory):
    import csv

    (path,) = directory.glob("random_proc*_*.csv")
    with open(path, encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["api_name", "stack"]
    return path, rows


def test_random_save_lists_the_calls_as_the_old_tool(tmp_path, old_python):
    lists = []
    for name, options in (("ours", {}), ("theirs", {"python": old_python, "ours": False})):
        place = tmp_path / name
        place.mkdir()
        (place / "script.py").write_text(RANDOM_SAVE)
        assert run_python(["script.py"], cwd=place, **options).stdout.endswith("passed\n")
        lists.append(listed(place / "out"))
    (path, ours), (_, theirs) = lists
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert "python_random.choice.1" in [name for name, _ in ours]
    strip = [
        [stack.replace(str(tmp_path / name), "") for _, stack in rows]
        for name, rows in zip(("ours", "theirs"), (ours, theirs))
    ]
    assert strip[0][0] == strip[1][0] and len(strip[0][4].split("File ")) == len(strip[1][4].split("File "))
    assert path.stat().st_mode & 0o777 == 0o640 and path.parent.stat().st_mode & 0o777 == 0o750


def test_random_save_and_is_enhanced_together(tmp_path):
    run(
        tmp_path,
        """
import torch.nn.functional
from msprobe.pytorch import random_save
original = torch.rand
seed_all(5, is_enhanced=True)
random_save("out")
assert draw() == draw()
seed_all(5)
assert draw() != draw()
seed_all(5, is_enhanced=True)
assert draw() == draw()
""",
    )
    _, rows = listed(tmp_path / "out")
    assert sum(name.startswith("torch_random.rand.") for name, _ in rows) == 6

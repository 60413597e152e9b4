"""msprobe certify --resume and --twice: lost states are named, clean resumes have none, and what does not repeat itself is found."""

import gc
import json
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from accelerate import skip_first_batches
from graph_cases import find_command
from launch import HERE, PACKAGE_ROOT, REPO

sys.path.insert(0, str(REPO / "tests" / "resume"))

from cases import Case, certify, faults
from msprobe._attach.generators import held_generators, is_generator
from msprobe._attach.leaves import Leaves
from msprobe._attach.resume import _order_of

ENVIRONMENT = {"PYTHONPATH": f"{HERE}:{PACKAGE_ROOT}"}
EVERYTHING = "optimizer,scheduler,scaler,statistics,average,curriculum,torch,numpy,python,position"
# All others: tests/resume/publish_resume.py, in minutes.
DEEP = (
    Case("accelerate_loop", drawn=True),
    Case("ddp_loop", lose="rank", lost=("random",), example="torch", ranks=("rank1",)),
)


def test_each_of_many_lost_states_is_named(tmp_path):
    done, certificate = certify(
        Case("plain_loop", lose=EVERYTHING), tmp_path / "out", find_command(), environment=ENVIRONMENT
    )
    assert done.returncode == 1, done.stderr
    assert "not restored on rank" in done.stderr and "the first op that noticed, in step 3 of rank" in done.stdout
    (rank,) = certificate["ranks"]
    lost = {(state["kind"], state["example"]) for state in rank["lost"]}
    assert lost >= {("random", "torch"), ("random", "numpy"), ("random", "python"), ("data", "the first batch")}
    assert {kind for kind, _ in lost} >= {"optimizer", "scheduler", "scaler", "batch_norm", "tensor", "object"}
    assert "average.shadow" in next(example for kind, example in lost if kind == "tensor")
    assert not {kind for kind, _ in lost} & {"parameter", "number"}
    assert all(state["as_at_first_step"] for state in rank["lost"] if state["kind"] in ("batch_norm", "tensor"))
    assert (tmp_path / "out" / "certificate.md").read_text().startswith("# Resume after 3 steps: lost")
    assert [*(tmp_path / "out" / "compare").glob("*.html")]
    assert not [*(tmp_path / "out").glob(".msprobe_*")]


def test_a_copy_of_a_random_state_is_no_tensor_of_the_training():
    leaves = Leaves()
    leaves.add("copy", torch.get_rng_state())
    leaves.add("bytes", torch.zeros(5000, dtype=torch.uint8))
    assert list(leaves.numbers) == ["copy"] and list(leaves.tensors) == ["bytes"]


class _Slots:
    __slots__ = ("rng",)


def _scales(rng):
    while True:
        yield rng.uniform()


def test_generators_that_no_variable_leads_to():
    slots, rng, inside = _Slots(), np.random.default_rng(1), np.random.default_rng(2)
    slots.rng = np.random.default_rng(3)
    source = _scales(rng)
    next(source)
    draw = (lambda held: lambda: held.random())(inside)
    found = [rng, inside, slots.rng, np.random.mtrand._rand, random._inst, np.random.default_rng(4)]
    assert all(is_generator(type(generator)) for generator in found)
    assert not is_generator(random.SystemRandom) and not is_generator(dict)
    names = {id(generator): name for generator, name in held_generators(found, {id(found[-1])})}
    assert names[id(slots.rng)] == "_Slots.rng" and names[id(rng)] == "_scales.<locals>"
    assert "<lambda>" in names[id(inside)] and draw() < 1
    assert len(names) == 3  # the global ones are states of their own, and the last one is known


def test_a_generator_of_a_library_is_looked_for_in_few_passes(monkeypatch):
    """Each of its functions refers to a module's variables, and each pass reads the whole heap."""
    passes = []

    def counted(*objects, referrers=gc.get_referrers):
        passes.append(len(objects))
        return referrers(*objects)

    generator = random.Random(5)
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "drawn_by_a_library", generator, raising=False)
        patch.setattr(gc, "get_referrers", counted)
        names = held_generators([generator], set())
    assert names == [] and 0 < len(passes) <= 4 and max(passes) <= 200, (names, passes)


def test_batches_that_a_sampler_leaves_out_count_as_fetched():
    loader = torch.utils.data.DataLoader(range(8), batch_size=2, shuffle=True)
    order, skipped = _order_of(skip_first_batches(skip_first_batches(loader, 1), 2))
    assert order is loader.sampler and skipped == 3
    assert _order_of(loader) == (loader.sampler, 0)


@pytest.mark.deep
@pytest.mark.parametrize("case", DEEP, ids=lambda case: case.name)
def test_cases(case, tmp_path):
    done, certificate = certify(case, tmp_path / "out", find_command(), environment=ENVIRONMENT)
    assert faults(case, done, certificate) == [], done.stderr[-2000:]


def _certify(tmp_path, *options):
    command = [find_command(), "certify", "-o", "out", *options]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=_environment())


def _environment():
    import os

    return {**os.environ, **ENVIRONMENT, "OMP_NUM_THREADS": "1"}


# Which of the two runs it is: a number of the process may lead to the same bits by chance.
WHICH_RUN = """
with open("runs", "ab") as runs:
    runs.write(b"x")
    run = runs.tell()
"""
RACE = f"""{WHICH_RUN}
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    hidden = model(torch.ones(2, 4))
    if step == 1:  # as an order of threads would
        hidden = torch.nn.functional.dropout(hidden, 0.25 * run)
    hidden.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_the_first_op_that_does_not_repeat_itself(tmp_path):
    (tmp_path / "race.py").write_text(RACE)
    done = _certify(tmp_path, "--twice", "--steps", "2", "--", sys.executable, "race.py")
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "out" / "certificate.json").read_text())
    (rank,) = result["ranks"]
    assert not result["repeats"] and rank["step"] == 1 and "Functional.dropout.0.forward" in rank["op"]
    assert rank["first_result"]["step"] == 1
    assert "does not repeat itself" in done.stderr


ORDER = f"""{WHICH_RUN}
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.randn(64, 4) * 1e3
for step in range(2):
    total = torch.zeros(4)
    for index in torch.randperm(64, generator=torch.Generator().manual_seed(run)).tolist():
        total += rows[index]  # as threads that add up what is ready
    (model(torch.ones(2, 4)).sum() + total.sum() * 1e-12).backward()
    optimizer.step()
"""


@pytest.mark.deep
def test_sums_in_another_order_are_no_repetition(tmp_path):
    """Two programs may add up in two orders; one that repeats itself to the bit does not, though no result shows it."""
    (tmp_path / "order.py").write_text(ORDER)
    done = _certify(tmp_path, "--twice", "--steps", "2", "--", sys.executable, "order.py")
    assert done.returncode == 1, done.stdout + done.stderr
    (rank,) = json.loads((tmp_path / "out" / "certificate.json").read_text())["ranks"]
    assert rank["step"] == 0 and rank["op"] == "Tensor.sum.1.forward: other bits in its inputs"
    assert rank["first_result"] is None


def test_options_that_make_no_sense(tmp_path):
    for options, text in (
        (["--twice", "--resume"], "excludes"),
        (["--save-at", "3"], "--resume"),
        (["--resume", "--resume-args", "'x"], "a quote is not closed"),
    ):
        done = _certify(tmp_path, *options, "--", sys.executable, "x.py")
        assert done.returncode == 2 and text in done.stderr, done.stderr

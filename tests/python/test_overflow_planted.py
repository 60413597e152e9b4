"""NaN and infinities planted in real runs on gloo processes: the right op on the right ranks in all of them."""

import json

import pytest
from graph_cases import run
from launch import HERE, run_python
from overflow_runs import TRUTH

# Their names at level L1, which has no modules.
AT_L1 = {"bad_weight": "Functional.linear.2.forward", "weight_of_one_shard": "Functional.linear.2.forward"}


def capture(directory, world, runs, task="statistics", level="mix", **section):
    directory.mkdir(parents=True, exist_ok=True)
    config = {"task": task, "level": level, "dump_path": str(directory / "dump"), task: section}
    (directory / "config.json").write_text(json.dumps(config))
    run_python(["-W", "ignore", HERE / "overflow_runs.py", world, directory, *runs], cwd=directory)
    return {name: directory / "dump" / f"step{i}" for i, name in enumerate(runs)}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    made = {}

    def get(world):
        if world not in made:
            made[world] = capture(tmp_path_factory.mktemp(f"world{world}"), world, list(TRUTH[world]))
        return made[world]

    return get


def report_of(step, out):
    return json.loads(run(["overflow_check", "-i", step, "-o", out, "--json"]).stdout)


def named(report):
    return sorted((op["rank"], op["op"]) for finding in report["first"] for op in finding["ops"])


@pytest.mark.parametrize("world,name", [(world, name) for world in TRUTH for name in TRUTH[world]])
def test_planted(world, name, dumps, tmp_path):
    truth = TRUTH[world][name]
    report = report_of(dumps(world)[name], tmp_path)
    assert [rank for rank, _ in named(report)] == list(truth.ranks)
    assert all(op.startswith(truth.op) for _, op in named(report))
    assert all(finding["kind"] == truth.kind for finding in report["first"])


def test_what_became_of_it(dumps, tmp_path):
    (finding,) = report_of(dumps(2)["exp_overflows"], tmp_path)["first"]
    assert not finding["absorbed"] and finding["carriers"] > 20
    assert finding["reached"][0]["rank"] == 0
    assert finding["reached"][0]["op"].startswith("Distributed.all_reduce.")
    assert finding["ops"][0]["line"].startswith("overflow_runs.py:")
    assert finding["ops"][0]["function"] == "exp_overflows"
    assert "max inf" in finding["outputs"]["output.0"]

    (finding,) = report_of(dumps(2)["absorbed_by_nan_to_num"], tmp_path)["first"]
    assert finding["absorbed"]
    assert [op["op"] for op in finding["absorbed_at"]] == ["Torch.nan_to_num.0.forward"]

    (finding,) = report_of(dumps(2)["row_all_masked"], tmp_path)["first"]
    assert finding["mask"] == "Tensor.masked_fill.0.forward"

    (finding,) = report_of(dumps(2)["sum_overflows"], tmp_path)["first"]
    assert finding["near_overflow"][0]["op"] == "Torch.add.0.forward"
    assert 1 < finding["near_overflow"][0]["margin"] < 1.2
    assert report_of(dumps(2)["healthy_masks"], tmp_path)["masks"] > 0


@pytest.mark.parametrize(
    "task,level,section",
    [("statistics", "L1", {}), ("statistics", "mix", {"summary_mode": "md5"}), ("tensor", "mix", {})],
    ids=["L1", "md5", "tensor"],
)
def test_other_kinds_of_dumps(task, level, section, tmp_path):
    names = ["exp_overflows", "bad_weight", "sum_overflows", "weight_of_one_shard", "healthy_masks", "first_stage"]
    for name, step in capture(tmp_path, 2, names, task, level, **section).items():
        truth = TRUTH[2][name]
        got = named(report_of(step, tmp_path / "out"))
        assert [rank for rank, _ in got] == list(truth.ranks), name
        op = AT_L1.get(name, truth.op) if level == "L1" else truth.op
        assert all(found.startswith(op) for _, found in got), name


SEVERAL_STEPS = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    debugger.start(model=model)
    loss = model(torch.ones(3, 4)).pow(2).sum()
    loss.backward()
    debugger.stop()
    if step == 1:
        model[2].weight.grad[0, 0] = float("inf")
    optimizer.step()
    optimizer.zero_grad()
    debugger.step()
"""


def test_the_first_step_that_goes_wrong(tmp_path):
    from capture_helpers import capture as capture_one

    dump = capture_one(tmp_path, SEVERAL_STEPS, level="mix")
    report = report_of(dump.root, tmp_path / "out")
    assert report["step"] == "step2" and report["steps"] == 3
    (finding,) = report["first"]
    assert finding["kind"] == "parameter" and finding["item"] == "parameters.weight"
    assert finding["ops"][0]["op"] == "Module.2.Linear.forward.0"
    assert finding["why"].startswith("parameters.weight is bad: in step1 it was clean (float32 [2, 8], max ")
    # The step alone knows of its neighbour.
    (alone,) = report_of(dump.root / "step2", tmp_path / "out")["first"]
    assert alone["why"] == finding["why"]

"""Several processes on gloo: what each layout records, that the bits stay, and what differs from the earlier tool."""

import json
from collections import Counter

import pytest
import torch
from distributed_scenario import SCENARIOS
from launch import HERE, run_python

ALL = list(SCENARIOS)
# Collectives of layouts that know more than two processes.
FOUR = ["collectives", "point_to_point", "ddp_accumulate", "fsdp2", "tp_megatron", "pipeline"]


class Run:
    def __init__(self, directory, scenarios, world):
        self.root, self.scenarios, self.world = directory / "dump", scenarios, world
        self.results = [json.loads((directory / f"result{rank}.json").read_text()) for rank in range(world)]

    def file(self, scenario, rank, name="dump.json"):
        step = self.scenarios.index(scenario)
        return json.loads((self.root / f"step{step}" / f"rank{rank}" / name).read_text())

    def data(self, scenario, rank):
        return self.file(scenario, rank)["data"]


def launch(directory, world, scenarios, **options):
    directory.mkdir(parents=True, exist_ok=True)
    config = {"task": "statistics", "level": "mix", "dump_path": str(directory / "dump"), "statistics": {}}
    (directory / "config.json").write_text(json.dumps({**config, **options.pop("config", {})}))
    script = HERE / "distributed_scenario.py"
    run_python(["-W", "ignore", script, world, directory, *scenarios], cwd=directory, **options)
    return Run(directory, scenarios, world)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("two"), 2, ALL)


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("four"), 4, FOUR)


@pytest.fixture(params=["two", "four"])
def run(request):
    return request.getfixturevalue(request.param)


def test_training_computes_the_same_bits_and_waits_answer_the_same(run):
    for rank, result in enumerate(run.results):
        assert list(result) == run.scenarios
        for name, outcome in result.items():
            assert outcome["same"], f"{name}, rank {rank}"
            assert outcome["same_answers"], f"{name}, rank {rank}"
    assert run.results[0]["collectives"]["waited"] is True


def test_each_process_has_a_directory_of_its_rank(run):
    for step in range(len(run.scenarios)):
        assert sorted(p.name for p in (run.root / f"step{step}").iterdir()) == [f"rank{r}" for r in range(run.world)]


def tensors(items):
    return [item for item in items if isinstance(item, dict) and item.get("type") == "torch.Tensor"]


def ends(item):
    return item["Min"], item["Max"]


def test_collectives_show_what_they_brought(run):
    world = run.world
    for rank in range(world):
        data = run.data("collectives", rank)
        names = Counter(name.split(".")[1] for name in data if name.startswith("Distributed."))
        assert names == {
            "all_reduce": 3,
            "broadcast": 1,
            "all_gather": 1,
            "all_gather_into_tensor": 1,
            "reduce_scatter": 1,
            "reduce_scatter_tensor": 1,
            "all_to_all_single": 1,
            "gather": 1,
            "scatter": 1,
            "reduce": 1,
        }
        total = world * (world + 1) / 2
        first = data["Distributed.all_reduce.0.forward"]
        assert ends(first["input_args"][0]) == (rank + 1, rank + 1)
        assert ends(first["output"][0]) == (total, total)
        # Through a name that was imported before the tool.
        assert data["Distributed.all_reduce.1.forward"]["input_kwargs"]["op"]["type"] == "torch.distributed.ReduceOp"
        late = data["Distributed.all_reduce.2.forward"]
        assert late["input_kwargs"] == {"async_op": {"type": "bool", "value": True}}
        assert ends(late["output"][0]) == (total, total)
        assert late["output"][1] == {"type": "bool", "value": True}
        gathered = data["Distributed.all_gather.0.forward"]
        assert gathered["input_args"][0] is None
        assert [ends(t) for t in gathered["output"][0]] == [(r, r) for r in range(world)]
        whole = data["Distributed.all_gather_into_tensor.0.forward"]
        assert whole["input_args"][0] is None
        assert ends(whole["output"][0]) == (0, world - 1)
        piece = data["Distributed.reduce_scatter_tensor.0.forward"]["output"][0]
        shift = sum(range(world))
        assert ends(piece) == (world * 2 * rank + shift, world * (2 * rank + 1) + shift)
        exchanged = data["Distributed.all_to_all_single.0.forward"]["output"][0]
        assert ends(exchanged) == (rank, 10 * (world - 1) + rank)
        assert ends(data["Distributed.scatter.0.forward"]["output"][0]) == (rank, rank)


def test_messages_show_what_has_arrived(run):
    for rank in range(run.world):
        before = (rank - 1) % run.world
        data = run.data("point_to_point", rank)
        assert ends(data["Distributed.recv.0.forward"]["output"][0]) == (before, before)
        received = data["Distributed.irecv.0.forward"]
        assert received["input_args"][0] is None
        assert ends(received["output"][0]) == (10 + before, 10 + before)
        assert data["Distributed.isend.0.forward"]["output"][0] is None
        batch = data["Distributed.batch_isend_irecv.0.forward"]
        (send, receive), (sent, got) = batch["input_args"][0], batch["output"][0]
        assert (send["class_type"], send["op"], receive["op"]) == ("torch.distributed.P2POp", "isend", "irecv")
        assert (send["peer"], receive["peer"]) == ((rank + 1) % run.world, before)
        assert ends(sent["tensor"]) == (20 + rank, 20 + rank)
        assert ends(got["tensor"]) == (20 + before, 20 + before)


def test_a_receive_nobody_waits_for_ends_with_the_step(two):
    for rank in (0, 1):
        data = two.data("never_waited", rank)
        assert list(data) == ["Distributed.irecv.0.forward", "Distributed.irecv.1.forward"]
        # Waited for after stop(), before step().
        assert ends(data["Distributed.irecv.0.forward"]["output"][0]) == (6 - rank, 6 - rank)
        assert data["Distributed.irecv.1.forward"]["output"] == [None, None, None]
        step = two.scenarios.index("never_waited")
        log = (two.root / f"step{step}" / f"rank{rank}" / "dump_error_info.log").read_text()
        assert "nobody waited for an asynchronous communication in its step: 1 times" in log


def test_nothing_else_was_skipped(run):
    expected = {"never_waited"}
    for name in run.scenarios:
        for rank in range(run.world):
            log = run.root / f"step{run.scenarios.index(name)}" / f"rank{rank}" / "dump_error_info.log"
            assert log.exists() == (name in expected), log.read_text() if log.exists() else name


def test_data_parallel(two):
    for name in ("ddp", "ddp_static_graph", "ddp_unused", "ddp_comm_hook"):
        data = two.data(name, 1)
        forwards = [op for op in data if op.startswith("Module.module.") and op.endswith(".forward.1")]
        assert forwards, name
        assert any(op.startswith("Module.module.") and ".parameters_grad." in op for op in data), name
    assert sum(".Linear.backward." in op for op in two.data("ddp", 0)) == 3 * 2
    # Both steps, both passes of recomputation.
    assert sum(".a.Linear.forward." in op for op in two.data("ddp_static_graph", 0)) == 4
    accumulated = [op for op in two.data("ddp_accumulate", 0) if op.startswith("Module.module.0.Linear.forward")]
    assert accumulated == [f"Module.module.0.Linear.forward.{i}" for i in range(6)]


def gradients_of(data):
    return {op: item for op, item in data.items() if ".parameters_grad." in op}


def test_gradients_are_recorded_before_buckets_are_divided_and_reduced(two):
    """With gradient_as_bucket_view they were those of the bucket: divided by the world size, or reduced half way."""
    for rank in (0, 1):
        plain, view = (gradients_of(two.data(name, rank)) for name in ("ddp", "ddp_bucket_view"))
        assert len(plain) == 6 and view == plain
    assert gradients_of(two.data("ddp", 0)) != gradients_of(two.data("ddp", 1))


def test_sharded_data_parallel(run):
    data = run.data("fsdp2", run.world - 1)
    weight = data["Module.1.Linear.forward.0"]["parameters"]["weight"]
    assert weight["type"] in ("torch.Tensor", "torch.distributed.tensor.DTensor")
    assert sum(op.startswith("Module.0.a.Linear.forward.") for op in data) == 4  # twice, and recomputed
    assert any(op.startswith("Module.0.a.Linear.backward.") for op in data)
    if not hasattr(torch.distributed, "all_gather_single"):  # its collectives had other names before
        return
    gathers = {op: item for op, item in data.items() if op.startswith("Distributed.all_gather_single.")}
    scatters = {op: item for op, item in data.items() if op.startswith("Distributed.reduce_scatter_single.")}
    assert len(gathers) >= 4 and len(scatters) >= 2
    for calls in (gathers, scatters):
        tensors = [[o for o in item["output"] if o and o.get("type") == "torch.Tensor"] for item in calls.values()]
        assert all(len(pair) == 2 for pair in tensors)
        assert any(pair[0]["Norm"] > 0 for pair in tensors)  # what arrived; a bias may be zero


def test_tensor_parallel(two, four):
    data = two.data("tp_dtensor", 0)
    item = data["Functional.linear.0.forward"]["input_args"][1]
    assert item["type"] == "torch.distributed.tensor.DTensor"
    assert (item["device_mesh"], item["placements"]) == ([0, 1], [{"Shard": {"dim": 0}}])
    for run in (two, four):
        data = run.data("tp_megatron", 1)
        reduces = {op: item for op, item in data.items() if op.startswith("Distributed.all_reduce")}
        assert len(reduces) == 4  # forward and backward of two steps
        parents = run.file("tp_megatron", 1, "construct.json")
        assert parents["Distributed.all_reduce.0.forward"] == "Module.3.RowParallelLinear.forward.0"
        first = [run.data("tp_megatron", r)["Distributed.all_reduce.0.forward"] for r in range(run.world)]
        mean = sum(item["input_args"][0]["Mean"] for item in first)
        assert first[0]["output"][0]["Mean"] == pytest.approx(mean, rel=1e-4)


def test_pipeline_parallel(run):
    last = run.world - 1
    for rank in range(run.world):
        data = run.data("pipeline", rank)
        assert sum(op.startswith("Module.0.Linear.forward.") for op in data) == 4
        assert sum(op.startswith("Module.0.Linear.backward.") for op in data) == 4
        received = [
            p2p["tensor"]
            for op, item in data.items()
            if op.startswith("Distributed.batch_isend_irecv")
            for p2p in item["output"][0]
            if p2p["op"] == "irecv"
        ]
        assert len(received) == (4 if rank in (0, last) else 8)
        assert all(tensor["Norm"] > 0 for tensor in received)
    # What one stage sends is what the next receives.
    sent = run.data("pipeline", last - 1)
    norms = {
        p2p["tensor"]["Norm"]
        for op, item in sent.items()
        if op.startswith("Distributed.batch")
        for p2p in item["input_args"][0]
        if p2p["op"] == "isend"
    }
    arrived = run.data("pipeline", last)["Distributed.batch_isend_irecv.0.forward"]["output"][0][0]["tensor"]["Norm"]
    assert arrived in norms


def test_the_pipeline_of_pytorch(two):
    for rank in (0, 1):
        data = two.data("pipelining", rank)
        assert any(op.startswith("Distributed.batch_isend_irecv") for op in data)
        # Two micro batches; before them PyTorch finds out shapes by a trial, which takes its numbers and is not recorded.
        assert [op for op in data if op.startswith("Module.0.Linear.forward.")] == [
            "Module.0.Linear.forward.1",
            "Module.0.Linear.forward.2",
        ]
        assert not any(op.startswith("Module.0.Linear.backward.0") for op in data)
        assert sum(op.startswith("Module.0.Linear.parameters_grad.") for op in data) == 2


def test_ranks_that_are_not_wanted_leave_no_file(tmp_path):
    run = launch(tmp_path, 2, ["ddp"], config={"rank": [1]})
    assert [p.name for p in (tmp_path / "dump" / "step0").iterdir()] == ["rank1"]
    assert all(result["ddp"]["same"] for result in run.results)


def test_a_future_that_is_fulfilled_before_its_work_is_completed(tmp_path):
    config = {"task": "statistics", "level": "L1", "dump_path": str(tmp_path / "dump"), "statistics": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    run_python(["-W", "ignore", HERE / "late_work_scenario.py", tmp_path / "config.json"], cwd=tmp_path)
    (rank,) = (tmp_path / "dump" / "step0").iterdir()
    assert not (rank / "dump_error_info.log").exists()
    item = json.loads((rank / "dump.json").read_text())["data"]["Distributed.all_reduce.0.forward"]
    assert ends(item["output"][0]) == (2, 2)


# ---- against the earlier tool -------------------------------------------------------------------------------------------


def shape_of(value):
    """Types, shapes and keys, without the numbers."""
    if isinstance(value, dict):
        if "type" in value:
            return value["type"], value.get("dtype"), value.get("shape")
        return {key: shape_of(item) for key, item in value.items() if key not in ("tag", "peer", "group_id")}
    return [shape_of(item) for item in value] if isinstance(value, list) else value


def test_the_same_entries_as_the_earlier_tool(two, old_python, tmp_path):
    # Its gradients are those of the bucket, and flat parameters end the training with it.
    names = [name for name in ALL if name not in ("ddp_bucket_view", "fsdp1_flat")]
    old = launch(tmp_path, 2, names, python=old_python, ours=False, env={"COMPARE_BITS": "0"})
    for rank in (0, 1):
        for name in names:
            ours, theirs = two.data(name, rank), old.data(name, rank)
            if name == "pipelining":  # the trial of the stage
                trial = list(theirs)[: list(theirs).index("Functional.linear.1.forward")]
                theirs = {op: item for op, item in theirs.items() if op in ours or op not in trial}
            # It records isend and irecv inside batch_isend_irecv, but without inputs.
            inner = {op for op, item in theirs.items() if "input_args" not in item}
            assert all(op.startswith(("Distributed.isend", "Distributed.irecv")) for op in inner - set(ours))
            missing = set(theirs) - set(ours) - inner
            assert not missing, f"{name}, rank {rank}"
            # It misses functions imported by name, those of newer releases, and everything behind a recomputation.
            ours = {op: item for op, item in ours.items() if "_single." not in op or op in theirs}
            if name not in ("collectives", "tp_megatron", "ddp_static_graph", "fsdp2"):
                assert set(ours) <= set(theirs), f"{name}, rank {rank}"
                for op, item in ours.items():
                    if op.startswith(("Distributed.isend", "Distributed.irecv")):
                        continue  # its outputs are those of the inner call
                    if name == "fsdp1" and ".parameters_grad." in op:
                        continue  # null there
                    if name == "tp_dtensor" and op.startswith("Module."):
                        continue  # it looks before the hooks of DTensor
                    assert shape_of(item) == shape_of(theirs[op]), f"{name}, rank {rank}: {op}"

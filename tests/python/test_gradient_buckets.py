"""What is done to gradients between the backward pass and the step: buckets, shards, hooks, parameters that are left out."""

import json

import pytest
from capture_helpers import capture
from graph_cases import run

GLOO = """
import tempfile
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
"""
# As Megatron's DDP: hooks add gradients to one flat buffer, of which each parameter has a part.
MODEL = """
def add_gradient(p):
    p.main_grad.add_(p.grad)
    p.grad = None

net = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 8))
data = torch.randn(4, 8, 16)
parameters = list(net.parameters())
sizes = [p.numel() for p in parameters]
buffer = torch.zeros(sum(sizes) + PADDING)
for p, part in zip(parameters, torch.split(buffer[: sum(sizes)], sizes)):
    p.main_grad = part.view(p.shape)
    p.register_post_accumulate_grad_hook(add_gradient)
"""
TRAIN = """
debugger.start(model=net)
for batch in data.split(SAMPLES):
    net(batch).square().mean().backward()
    AFTER_BATCH
REDUCE
with torch.no_grad():
    for p in TRAINED:
        p.mul_(0.99)
        p.add_(p.main_grad, alpha=-0.1)
debugger.stop()
debugger.step()
"""
WHOLE = """
buffer *= 0.5
dist.all_reduce(buffer)
"""
PIECES = """
works = []
for piece in buffer.split(SIZE):
    piece *= 0.5
    works.append(dist.all_reduce(piece, async_op=True))
for work in works:
    work.wait()
"""
SHARDS = """
buffer *= 0.5
shard = torch.empty_like(buffer)
dist.reduce_scatter_tensor(shard, buffer)
dist.all_gather_into_tensor(buffer, shard)
"""


def trained(directory, reduce, **names):
    settings = {"PADDING": "0", "SAMPLES": "2", "AFTER_BATCH": "pass", "TRAINED": "parameters", **names}
    text = GLOO + MODEL + TRAIN.replace("REDUCE", reduce)
    for name, value in settings.items():
        text = text.replace(name, value)
    return capture(directory, text, level="mix")


def verdict(target, golden, out):
    command = [
        "compare",
        "-tp",
        target.directory(rank="rank0"),
        "-gp",
        golden.directory(rank="rank0"),
        "-o",
        out,
        "--json",
    ]
    return json.loads(run(command).stdout)["verdict"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("golden"), WHOLE)


@pytest.mark.parametrize(
    "how",
    [
        {"reduce": PIECES.replace("SIZE", "len(buffer)")},  # only asynchronous
        {"reduce": PIECES.replace("SIZE", "272")},  # buckets
        {"reduce": WHOLE, "PADDING": "104"},  # so that ranks can divide it
        {"reduce": SHARDS},  # a distributed optimizer
    ],
    ids=["asynchronous", "buckets", "padded", "shards"],
)
def test_another_way_to_reduce_is_no_difference(tmp_path, golden, how):
    other = trained(tmp_path / "other", how.pop("reduce"), **how)
    for one, two in ((other, golden), (golden, other)):
        said = verdict(one, two, tmp_path)
        assert said["outcome"] in ("equal", "round_off"), said["text"]["en"]
        assert not said["origins"]


def test_a_gradient_that_the_buffer_lost(tmp_path, golden):
    lost = trained(tmp_path / "lost", WHOLE, AFTER_BATCH="net[1].weight.main_grad.zero_()")
    first = verdict(lost, golden, tmp_path)["origins"][0]
    assert first["module"] == "1" and first["op"].startswith("Tensor.add_."), first
    again = trained(tmp_path / "again", PIECES.replace("SIZE", "272"), AFTER_BATCH="net[1].weight.main_grad.zero_()")
    assert verdict(again, golden, tmp_path)["origins"][0]["module"] == "1"


@pytest.mark.parametrize("extra", [False, True])
def test_a_parameter_that_is_left_out(tmp_path, golden, extra):
    less = trained(tmp_path / "less", WHOLE, TRAINED="[p for p in parameters if p is not net[1].weight]")
    said = verdict(golden, less, tmp_path) if extra else verdict(less, golden, tmp_path)
    first = said["origins"][0]
    assert (first["cause"], first["parameter"]) == ("extra_op" if extra else "missing_op", "1.weight")
    assert "1.weight" in said["text"]["en"][0] and "1.weight" in said["text"]["zh"][0]


def test_the_same_data_in_other_micro_batches(tmp_path, golden):
    other = trained(tmp_path / "other", WHOLE, SAMPLES="1")
    said = verdict(other, golden, tmp_path)
    assert said["outcome"] == "unknown" and not said["origins"], said["text"]["en"]
    assert "micro batches of another size" in said["text"]["en"][0]


def test_other_data_is_still_an_origin(tmp_path, golden):
    """Fewer samples are not the same data."""
    less = trained(tmp_path / "less", WHOLE.replace("0.5", "1.0"), SAMPLES="2)[:1] and data[:2].split(1")
    assert verdict(less, golden, tmp_path)["outcome"] == "origin"


# Fresh memory holds one byte everywhere.
WRITTEN = """
import ctypes
ctypes.CDLL(None).mallopt(-6, 0x85)
debugger.start(model=nn.Linear(1, 1))
sent = torch.empty(64).clone()
sent[32:] = 1.0
got = torch.empty(64)
dist.all_to_all_single(got, sent)
torch.relu(got)
debugger.stop()
debugger.step()
"""


def test_what_a_communication_filled_is_written(tmp_path):
    """Also where it brought what the memory held before."""
    recorded = capture(tmp_path, GLOO + WRITTEN, level="mix")
    op = recorded.data(rank="rank0")["Distributed.all_to_all_single.0.forward"]
    assert not [key for item in op["output"] if item for key in item if "unwritten" in key]

"""The same computation in another order, or with a part of it computed again, is the same computation."""

import json

import pytest
from capture_helpers import capture
from graph_cases import run

MODEL = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
    def forward(self, x):
        return F.gelu(torch.matmul(self.fc(x), x.transpose(0, 1)) * SCALE) @ x

a, b = Block(4), Block(4)
inputs = [torch.randn(3, 4), torch.randn(3, 4)]
SCALE = 1.0
"""
SCHEDULES = {
    "by chunk": "order = [(a, 0), (a, 1), (b, 0), (b, 1)]",
    "by batch": "order = [(a, 0), (b, 0), (a, 1), (b, 1)]",
}
TRAIN = """
debugger.start(model=[a, b])
held = dict(enumerate(inputs))
for block, i in order:
    held[i] = block(held[i])
    torch.sum(held[i])  # outside of all modules
for i in reversed(range(2)):
    held[i].sum().backward()
debugger.stop()
debugger.step()
"""


def verdict(target, golden, out):
    command = ["compare", "-tp", target.directory(), "-gp", golden.directory(), "-o", out, "--json"]
    return json.loads(run(command).stdout)["verdict"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("golden"), MODEL + SCHEDULES["by chunk"] + TRAIN, level="mix")


def test_another_order_of_batches(tmp_path, golden):
    target = capture(tmp_path / "target", MODEL + SCHEDULES["by batch"] + TRAIN, level="mix")
    assert target.names() != golden.names() and sorted(target.names()) == sorted(golden.names())
    for one, other in ((target, golden), (golden, target)):
        said = verdict(one, other, tmp_path)
        assert said["outcome"] == "equal", said["text"]["en"]


def test_a_fault_in_another_order(tmp_path, golden):
    wrong = SCHEDULES["by batch"] + "\nwith torch.no_grad(): b.fc.weight[0] *= 1.1\n"
    target = capture(tmp_path / "target", MODEL + wrong + TRAIN, level="mix")
    first = verdict(target, golden, tmp_path)["origins"][0]
    assert first["cause"] == "weight" and first["module"].startswith("1.fc")


RECOMPUTED = """
import torch.utils.checkpoint as checkpoint
debugger.start(model=[a, b])
for x in inputs:
    x = x.requires_grad_()
    HOW
    x.sum().backward()
debugger.stop()
debugger.step()
"""


def test_recomputation_on_one_side(tmp_path):
    plain = capture(tmp_path / "plain", MODEL + RECOMPUTED.replace("HOW", "x = b(a(x))"), level="mix")
    how = "x = b(checkpoint.checkpoint(a, x, use_reentrant=True))"
    again = capture(tmp_path / "again", MODEL + RECOMPUTED.replace("HOW", how), level="mix")
    assert len(again.names()) > len(plain.names())
    for one, other in ((again, plain), (plain, again)):
        said = verdict(one, other, tmp_path)
        assert said["outcome"] == "equal" and said["ops"]["inherited"] == 0, said["text"]["en"]

"""Two runs that are the same but for memory that nobody wrote, freed or not yet filled: nothing is called a difference."""

import json

import pytest
from capture_helpers import capture
from graph_cases import run

# What fresh memory holds, in every byte but for these bits.
FILLED = "import ctypes\nctypes.CDLL(None).mallopt(-6, {})\n"

# What Megatron does with the output of the last stage: it is used for its grad_fn alone.
FREED = """
net = nn.Linear(8, 4)
debugger.start(model=net)
loss = net(torch.ones(3, 8)).sum()
loss.data = torch.empty((1,))
scaled = torch.ones(()) * loss
scaled.backward(torch.ones_like(scaled))
debugger.stop()
debugger.step()
"""

# A run that computes with such memory.
USED = """
net = nn.Linear(8, 4)
debugger.start(model=net)
scale = torch.empty(3, 4)
loss = (net(torch.ones(3, 8)) * scale).sum()
loss.backward()
debugger.stop()
debugger.step()
"""

# A buffer of gradients, as ZeRO fills it.
PIECES = """
debugger.start()
buffer = torch.empty(4096)
buffer.narrow(0, 0, 2048).copy_(torch.arange(2048.0))
buffer.narrow(0, 2048, 2048).copy_(torch.arange(2048.0) + 1)
torch.relu(buffer)
debugger.stop()
debugger.step()
"""

# One buffer for all layers and steps, which nobody reads and some call has left NaN in.
NOT_READ = """
buffer = torch.full((2, 4, 4), float("nan")) * FACTOR
for _ in range(2):
    debugger.start()
    out = torch.baddbmm(buffer, torch.ones(2, 4, 3), torch.ones(2, 3, 4), beta=0.0, alpha=0.5)
    torch.softmax(out, -1)
    debugger.stop()
    debugger.step()
"""


def pair(tmp_path, body, **options):
    """The same run twice, with other memory."""
    return [capture(tmp_path / str(bits), FILLED.format(bits) + body, **options).root for bits in (0x85, 0x44)]


def compared(tmp_path, roots, step=0):
    paths = [root / f"step{step}" for root in roots]
    report = json.loads(run(["compare", "-tp", paths[0], "-gp", paths[1], "-o", tmp_path, "--json"]).stdout)
    return report["verdict"]


@pytest.mark.parametrize("kind", ["statistics", "md5", "tensor"])
@pytest.mark.parametrize("body", [FREED, PIECES], ids=["freed", "pieces"])
def test_it_is_no_difference(tmp_path, body, kind):
    task = "tensor" if kind == "tensor" else "statistics"
    section = {"summary_mode": "md5"} if kind == "md5" else {}
    verdict = compared(
        tmp_path, pair(tmp_path, body, level="mix" if body == FREED else "L1", task=task, section=section)
    )
    assert verdict["origins"] == []
    assert {k: v for k, v in verdict["ops"].items() if v and k != "bit_equal"} == {}
    assert verdict["text"]["en"][0].startswith("No difference: all ")


def test_where_a_run_computes_with_it_that_is_told(tmp_path):
    verdict = compared(tmp_path, pair(tmp_path, USED, level="mix"))
    (origin,) = verdict["origins"]
    assert origin["op"] == "Tensor.__mul__.0.forward"


def test_no_nan_of_freed_memory(tmp_path):
    body = "torch.use_deterministic_algorithms(True)\ntorch.utils.deterministic.fill_uninitialized_memory = True\n"
    root = capture(tmp_path, body + FREED, level="mix").root
    report = json.loads(run(["overflow_check", "-i", root / "step0", "-o", tmp_path, "--json"]).stdout)
    assert report["first"] == []


def test_what_is_not_read_is_no_input(tmp_path):
    bodies = [NOT_READ.replace("FACTOR", "1"), NOT_READ.replace('float("nan")', "3.0").replace("FACTOR", "2")]
    roots = [capture(tmp_path / str(i), body, level="L1").root for i, body in enumerate(bodies)]
    for step in (0, 1):
        verdict = compared(tmp_path, roots, step)
        assert verdict["text"]["en"][0].startswith("No difference: all ")
        report = json.loads(run(["overflow_check", "-i", roots[0] / f"step{step}", "-o", tmp_path, "--json"]).stdout)
        assert report["first"] == []


def test_a_result_of_what_is_not_read_is_compared(tmp_path):
    bodies = [NOT_READ.replace("FACTOR", "1"), NOT_READ.replace("FACTOR", "1").replace("alpha=0.5", "alpha=0.25")]
    roots = [capture(tmp_path / str(i), body, level="L1").root for i, body in enumerate(bodies)]
    (origin,) = compared(tmp_path, roots)["origins"]
    assert origin["op"] == "Torch.baddbmm.0.forward"


AS_LIST = """
net = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
debugger.start(model=MODEL)
net(torch.ones(3, 8)).sum().backward()
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("models", [("[net]", "net"), ("net", "[net]")], ids=["list", "model"])
def test_a_model_recorded_as_a_list_of_one(tmp_path, models):
    roots = [capture(tmp_path / str(i), AS_LIST.replace("MODEL", m), level="mix").root for i, m in enumerate(models)]
    verdict = compared(tmp_path, roots)
    assert (verdict["ops"]["target_only"], verdict["ops"]["golden_only"]) == (0, 0)
    assert verdict["text"]["en"][0].startswith("No difference: all ")
    paths = [root / "step0" for root in roots]
    command = ["graph_visualize", "-tp", paths[0], "-gp", paths[1], "-o", tmp_path, "--json"]
    summary = json.loads(run(command).stdout)
    assert (summary["unmatched"], summary["golden_unmatched"], summary["error"]) == (0, 0, 0)

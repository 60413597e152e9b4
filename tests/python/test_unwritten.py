"""Memory that nobody has written is marked as such until somebody writes it, whoever that is."""

import pytest
from capture_helpers import capture

SCRIPT = """
import ctypes, gc
debugger.start()
whole = torch.empty(64)
first = whole.narrow(0, 0, 32)          # narrow.0: memory that nobody wrote, and a view of it
ctypes.memset(first.data_ptr(), 1, 128)  # by what no hook sees
torch.relu(first)                        # relu.0: written
whole.narrow(0, 32, 32)                  # narrow.1: the other half
torch.sum(whole[32:].view(4, 8).t())     # sum.0: through other views
whole.copy_(torch.arange(64.0))
torch.relu(whole)                        # relu.1
like = torch.zeros(3, 5).new_empty(7)
torch.neg(like)                          # neg.0
address = torch.empty(1000).data_ptr()   # freed
gc.collect()
torch.relu(torch.ones(1000) * 2)         # relu.2: maybe in the same place
torch.relu(torch.zeros(64))              # relu.3: zeros that somebody wrote
debugger.stop()
debugger.step()
"""


def marks(dump):
    return {name: entry["input_args"][0].get("unwritten", False) for name, entry in dump.data().items()}


def test_marks(tmp_path):
    dump = capture(tmp_path, SCRIPT)
    found = marks(dump)
    unwritten = {"Tensor.narrow.0.forward", "Tensor.t.0.forward", "Torch.sum.0.forward", "Torch.neg.0.forward"}
    assert {name for name, mark in found.items() if mark} == unwritten
    data = dump.data()
    assert data["Tensor.narrow.0.forward"]["output"][0]["unwritten"] is True
    # Its input is the whole, half of which is written; its output is the other half.
    assert data["Tensor.narrow.1.forward"]["output"][0]["unwritten"] is True


def test_memory_of_devices_is_sampled(tmp_path, monkeypatch):
    """There the parts of a storage are not told apart: once written, it is written."""
    monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    found = marks(capture(tmp_path, SCRIPT))
    assert {name for name, mark in found.items() if mark} == {"Tensor.narrow.0.forward", "Torch.neg.0.forward"}


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_modules_have_them_too(tmp_path, level):
    script = "model = nn.Sequential(nn.ReLU())\ndebugger.start(model=model)\nmodel(torch.empty(3, 50))\n"
    dump = capture(tmp_path, script + "debugger.stop()\ndebugger.step()", level=level)
    entry = dump.data()["Module.0.ReLU.forward.0"]
    assert entry["input_args"][0]["unwritten"] is True
    assert "unwritten" not in entry["output"][0]


PIECES = """
debugger.start()
buffer = torch.empty(100)
buffer.narrow(0, 0, 50).copy_(torch.arange(1.0, 51.0))    # narrow.0
buffer.narrow(0, 50, 50).copy_(torch.arange(1.0, 51.0))   # narrow.1
torch.relu(buffer)                                        # relu.0
debugger.stop()
debugger.step()
debugger.start()
later = torch.empty(64)
debugger.stop()
debugger.step()
debugger.start()
torch.relu(later)
debugger.stop()
debugger.step()
"""


def test_a_buffer_that_is_filled_piece_by_piece(tmp_path):
    """By M_PERTURB fresh memory holds something: what is zero may have been written."""
    dump = capture(tmp_path, "import ctypes\nctypes.CDLL(None).mallopt(-6, 0x85)\n" + PIECES)
    inputs = {name: entry["input_args"][0] for name, entry in dump.data().items()}
    assert inputs["Tensor.narrow.0.forward"]["unwritten"] is True
    assert inputs["Tensor.narrow.1.forward"]["partly_unwritten"] is True
    assert {"unwritten", "partly_unwritten"}.isdisjoint(inputs["Torch.relu.0.forward"])


def test_a_mark_lasts_as_long_as_the_memory(tmp_path):
    dump = capture(tmp_path, PIECES)
    (name,) = dump.data(step=2)
    assert dump.data(step=2)[name]["input_args"][0]["unwritten"] is True


RESIZED = """
debugger.start()
grown = torch.arange(1.0, 9.0)
grown.resize_(100)
torch.relu(grown)                        # relu.0: its end
torch.relu(grown[:8])                    # relu.1: what it was
torch.relu(grown[50:])                   # relu.2: of its end alone
grown[8:].copy_(torch.arange(92.0))
torch.relu(grown)                        # relu.3: written
torch.relu(grown.resize_(4).resize_(50)) # relu.4: in the memory that it has
fresh = torch.empty(8).resize_(100)
torch.relu(fresh)                        # relu.5
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("device", [False, True])
def test_memory_that_is_added_to_a_tensor(device, tmp_path, monkeypatch):
    if device:
        monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    data = capture(tmp_path, RESIZED).data()
    marks = [
        next(
            (
                mark
                for mark in ("unwritten", "partly_unwritten")
                if mark in data[f"Torch.relu.{n}.forward"]["input_args"][0]
            ),
            "",
        )
        for n in range(6)
    ]
    part = "partly_unwritten"
    # The parts of a device's memory are not told apart.
    assert marks == [part, part if device else "", part if device else "unwritten", "", "", "unwritten"]
    assert part in data["Tensor.resize_.0.forward"]["output"][0]

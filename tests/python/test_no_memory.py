"""Memory is refused to the recorder: the training computes the same and ends, and the summary says what is missing."""

import json
import shutil
import subprocess

import pytest
from capture_helpers import capture
from launch import HERE

# Of the extension's allocations each so manieth fails; from start() on, or right behind it.
RUNS = ((3, True), (40, True), (3, False), (40, False), (700, False))
# Which allocation it is depends on the threads: of these some always fell within a record, and behind the copy of a tensor.
MANY = (2, 3, 5, 7, 11, 20, 40, 100, 300)

TRAIN = """
import ctypes
import hashlib

library = ctypes.CDLL(None)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([nn.LSTM(32, 400), nn.Linear(400, 400), nn.Dropout(0.1), nn.LayerNorm(400)])
        self.last = nn.Linear(400, 2)

    def forward(self, x, mask=None):
        y, state = self.inner[0](x)
        for module in self.inner[1:]:
            y = F.gelu(module(y))
        return {"y": self.last(y) * mask, "state": state}


def train(rate, from_start):
    torch.manual_seed(0)
    model, x = Model(), torch.randn(6, 64, 32)
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    assert library.arm(ctypes.c_long(rate if from_start else 0)) == 1
    debugger.start(model=model)
    library.arm(ctypes.c_long(rate))
    for _ in range(3):
        out = model(x, mask=torch.ones(6, 64, 1))
        loss = out["y"].pow(2).sum() + out["state"][0].mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    try:
        torch.nn.functional.linear(x, torch.ones(1, 5))
        raise AssertionError("the user's error is lost")
    except RuntimeError as error:
        assert "shapes" in str(error)
    debugger.stop()
    debugger.step()
    library.arm(ctypes.c_long(0))
    bits = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    return losses, bits.hexdigest(), torch.get_rng_state().sum().item()


results = [train(rate, from_start) for rate, from_start in ((0, False), *RUNS)]
print(json.dumps({"same": [r == results[0] for r in results], "refused": library.refusals()}))
"""


@pytest.fixture(scope="module")
def failing_malloc(tmp_path_factory):
    library = tmp_path_factory.mktemp("preload") / "failing_malloc.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need a C compiler: install gcc"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "failing_malloc.c", "-ldl"], check=True)
    return library


@pytest.mark.parametrize("task, mode", [("statistics", "statistics"), ("statistics", "md5"), ("tensor", None)])
def test_memory_that_is_refused(task, mode, failing_malloc, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(failing_malloc))
    section = {"summary_mode": mode} if mode else {}
    dump = capture(tmp_path, f"RUNS = {RUNS!r}\n" + TRAIN, level="mix", task=task, section=section)
    told = json.loads(dump.script.stdout.splitlines()[-1])
    assert told["same"] == [True] * (1 + len(RUNS)) and told["refused"] > 300
    output = dump.script.stdout + dump.script.stderr
    assert "Traceback" not in output and "MemoryError" not in output
    whole = dump.names(0)
    assert len(whole) > 100
    for step, (rate, _) in enumerate(RUNS, 1):
        lines = [line for line in output.splitlines() if "memory" in line and f"step {step}" in line]
        assert lines, f"nothing is said of step {step}, where each {rate}th allocation failed:\n{output}"
    # What is there is what there would be; the file itself may be what had no memory.
    data, part = dump.data(0), dump.data(len(RUNS))
    assert part or any("nothing is recorded" in line or "incomplete" in line for line in lines), lines
    assert set(part) <= set(data)


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_memory_that_is_refused_at_many_rates(task, failing_malloc, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(failing_malloc))
    runs = [(rate, first) for rate in MANY for first in (False, True)]
    dump = capture(tmp_path, f"RUNS = {runs!r}\n" + TRAIN, level="mix", task=task)
    told = json.loads(dump.script.stdout.splitlines()[-1])
    assert told["same"] == [True] * (1 + len(runs)) and told["refused"] > 1000

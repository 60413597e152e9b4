"""A debugger that exists but does not record: a training step makes the same calls, into the same functions, as without it."""

import json

from capture_helpers import PRELUDE, write_config
from launch import run_python

BODY = """
from collections import Counter
model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(4, 8), torch.randint(0, 2, (4,))

def step():
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()

def calls():
    # C functions by their name and type, Python functions by their code.
    seen = Counter()
    def profile(frame, event, arg):
        if event == "c_call":
            seen["c", getattr(arg, "__qualname__", str(arg)), type(arg).__name__] += 1
        elif event == "call":
            seen["py", frame.f_code.co_filename, frame.f_code.co_firstlineno] += 1
    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    return seen

def slots():
    # What a call of each kind runs through: hooks of the modules, and the functions themselves.
    return [(dict(m._forward_pre_hooks), dict(m._forward_hooks), dict(m._backward_hooks)) for m in model.modules()], [
        (f, getattr(f, "__code__", None)) for f in (F.linear, F.gelu, F.layer_norm, torch.relu, torch.Tensor.add, F.cross_entropy)]

for _ in range(3):
    step()
bare, bare_slots = calls(), slots()

from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path="config.json")
step()
constructed, constructed_slots = calls(), slots()
debugger.start(model=model)
step()
debugger.stop()
debugger.step()
step()
stopped, stopped_slots = calls(), slots()

for name, seen, at in (("constructed", constructed, constructed_slots), ("stopped", stopped, stopped_slots)):
    print(name, sorted(map(str, (seen - bare).items())), sorted(map(str, (bare - seen).items())), at == bare_slots)
print("CALLS", sum(bare.values()))
"""


def test_same_calls_when_constructed_and_when_stopped(tmp_path):
    write_config(tmp_path, level="mix")
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + BODY)
    lines = run_python([script], cwd=tmp_path, fresh=True).stdout.splitlines()
    said = {line.split()[0]: line for line in lines if line.split()[0] in ("constructed", "stopped", "CALLS")}
    assert said["constructed"] == "constructed [] [] True"
    assert said["stopped"] == "stopped [] [] True"
    assert int(said["CALLS"].split()[1]) > 200


def test_stop_in_a_hook_of_an_optimizer(tmp_path):
    """The hooks that are taken away then stand in the list that the optimizer is going through."""
    body = """
from torch.optim.optimizer import register_optimizer_step_post_hook
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path="config.json")
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for step in range(3):
    debugger.start(model=model)
    if step == 0:
        register_optimizer_step_post_hook(lambda *a: (debugger.stop(), seen.append("stop")))
        for name in "ab":
            register_optimizer_step_post_hook(lambda *a, name=name: seen.append(name))
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    debugger.step()
print("SEEN", seen == ["stop", "a", "b"] * 3)
"""
    write_config(tmp_path, level="mix")
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + body)
    done = run_python([script], cwd=tmp_path, fresh=True)
    assert "SEEN True" in done.stdout
    for step in range(3):
        construct = json.loads((tmp_path / f"dump/step{step}/rank/construct.json").read_text())
        assert "optimizer" in construct.values()

"""The loss of loops whose model returns none, taken where backward() is called on it."""

import json

import monitor_files
import pytest
from test_monitor import HEAD

LOOPS = {
    "plain": """
for _ in range(3):
    loss = loss_of(model, batch())
    loss.backward()
    step(loss)
""",
    "scaled": """
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(3):
    loss = loss_of(model, batch())
    scaler.scale(loss).backward()
    losses.append(loss.item())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
""",
    "of two models": """
other = copy.deepcopy(model)
for _ in range(3):
    tokens = batch()
    loss_of(other, tokens).backward()
    loss = loss_of(model, tokens)
    loss.backward()
    step(loss)
""",
    "checkpointed": """
from torch.utils.checkpoint import checkpoint
for _ in range(3):
    tokens = batch()
    logits = model(tokens)
    loss = checkpoint(lambda x: torch.nn.functional.cross_entropy(x.flatten(0, 1), tokens.flatten()), logits, use_reentrant=True)
    loss.backward()
    step(loss)
""",
    "given afterwards": """
for _ in range(3):
    loss = loss_of(model, batch())
    (loss / 2).backward()
    monitor.record_loss(loss)
    step(loss)
""",
}

SCRIPT = """
import copy
from msprobe.pytorch import TrainerMon
model, optimizer = model_and_optimizer()
losses = []
def batch():
    return torch.randint(0, 20, (2, 6))
def loss_of(model, tokens):
    return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
def step(loss):
    losses.append(loss.item())
    optimizer.step()
    optimizer.zero_grad()
monitor = TrainerMon(config(loss=True, step_count_per_record=9))
monitor.set_monitor(model, optimizer)
{loop}
json.dump(losses, open("losses.json", "w"))
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_the_loss_is_what_backward_is_called_on(run_script, tmp_path, loop):
    done = run_script(HEAD + SCRIPT.format(loop=LOOPS[loop]), env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    header, *rows = monitor_files.tables(monitor_files.directories(str(tmp_path))[0])["loss_0-8.csv"]
    assert header[-1] == "loss"
    losses = json.loads((tmp_path / "losses.json").read_text())
    assert [float(row[-1]) for row in rows] == pytest.approx(losses, rel=1e-6)

"""A training ends as without the tool, whatever is still there when the interpreter ends."""

import pytest

START = """
import json, pathlib, torch
from msprobe.pytorch import PrecisionDebugger
pathlib.Path("config.json").write_text(json.dumps({"task": "TASK", "level": "LEVEL", "rank": [], "step": [],
    "dump_path": "out", "TASK": {"scope": [], "list": [], "data_mode": ["all"]}}))
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
debugger = PrecisionDebugger(config_path="config.json")
debugger.start(model=net)
"""
LEFT = {
    "unwritten memory": "kept = torch.empty(1000)\nnet(torch.ones(2, 4)).sum().backward()\ndebugger.stop(); debugger.step()",
    "a graph": "loss = net(torch.ones(2, 4)).sum()\ndebugger.stop(); debugger.step()",
    "an open step": "kept = torch.empty(7)\nnet(torch.ones(2, 4)).sum().backward()",
    "a work": """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.FileStore("store", 1), rank=0, world_size=1)
kept = torch.empty(5)
work = dist.all_reduce(torch.ones(3), async_op=True)
debugger.stop(); debugger.step()
""",
    "a view of a freed storage": "x = torch.ones(9)\nview = x[2:]\nx.untyped_storage().resize_(0)\ndebugger.stop(); debugger.step()",
    "an exception": "kept = torch.empty(5)\nnet(torch.ones(2, 4)).sum().backward()\nimport atexit\natexit.register(lambda: kept)",
    "a thread": "import threading\nt = threading.Thread(target=lambda: net(torch.empty(2, 4))); t.start(); t.join()\nkept = torch.empty(3)",
}


@pytest.mark.parametrize("left", LEFT)
def test_the_process_ends_as_it_would(run_script, left):
    script = START.replace("TASK", "tensor" if left == "a graph" else "statistics").replace("LEVEL", "mix") + LEFT[left]
    assert run_script(script, fresh=True).returncode == 0


def test_the_monitor_ends_as_it_would(run_script):
    script = """
import json, pathlib, torch
from msprobe.pytorch import TrainerMon
pathlib.Path("config.json").write_text(json.dumps({"targets": {}, "module_ranks": [], "format": "csv", "mg_distribution": True,
    "wg_distribution": True, "ops": ["norm"], "print_struct": False}))
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters())
monitor = TrainerMon("config.json")
monitor.set_monitor(net, optimizer=optimizer, grad_acc_steps=1)
kept = torch.empty(1000)
for _ in range(3):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    assert run_script(script, fresh=True).returncode == 0

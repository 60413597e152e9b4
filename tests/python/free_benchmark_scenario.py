"""A small training under task free_benchmark, or without it.

usage: free_benchmark_scenario.py DIRECTORY SECTION      (SECTION: that of config.json as JSON, or "bare")

Writes what the training computed to DIRECTORY/trained.pt; a section {"dtype": "bfloat16"} trains in it. Runs under mindstudio-probe 8.1.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(20, 16), nn.Linear(16, 32), nn.Linear(32, 20)
        self.norm = nn.BatchNorm1d(32)

    def forward(self, ids):
        x = self.norm(functional.gelu(self.first(self.table(ids))))
        x = functional.dropout(torch.softmax(x, -1), 0.1)
        x *= 2
        parts = torch.split(x, 16, 1)
        x = torch.cat([parts[1] - parts[0] * 0.5, parts[0]], 1)
        x, _ = torch.max(torch.stack([x, x * 0.9]), 0)
        return self.second(torch.exp(x) * 1e3)


def main():
    root, given = Path(sys.argv[1]), sys.argv[2]
    root.mkdir(parents=True, exist_ok=True)
    section = None if given == "bare" else json.loads(given)
    dtype = getattr(torch, (section or {}).pop("dtype", sys.argv[3] if len(sys.argv) > 3 else "float32"))
    debugger = None
    if section is not None:
        from msprobe.pytorch import PrecisionDebugger

        settings = {
            "task": "free_benchmark",
            "dump_path": str(root),
            "rank": [],
            "step": [],
            "level": "L1",
            "free_benchmark": section,
        }
        (root / "config.json").write_text(json.dumps(settings))
        debugger = PrecisionDebugger(config_path=str(root / "config.json"))
    torch.manual_seed(0)
    model = Net().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(3):
        ids = torch.arange(8) + step
        if debugger is not None:
            debugger.start()
        loss = functional.cross_entropy(model(ids), (ids + 1) % 20)
        loss.backward()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    torch.save([*losses, *model.state_dict().values(), torch.get_rng_state()], root / "trained.pt")


if __name__ == "__main__":
    main()

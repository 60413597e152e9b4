"""One step of a small training, recorded at L1.

usage: acc_check_scenario.py DIRECTORY statistics|tensor      writes DIRECTORY/statistics or DIRECTORY/tensor
"""

import json
import sys
from pathlib import Path

import torch
from msprobe.pytorch import PrecisionDebugger
from torch.nn import functional


def step():
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(size, requires_grad=True) for size in ((4, 8), (16, 8), (16,)))
    table = torch.randn(10, 8, requires_grad=True)
    y = functional.linear(x, weight, bias)
    z = functional.dropout(torch.softmax(functional.gelu(y), -1), 0.1)
    top, _ = torch.topk(z, 3)
    rows = functional.embedding(torch.tensor([1, 2, 3, 4]), table)
    half = torch.matmul(x.bfloat16(), weight.bfloat16().t())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        auto = functional.linear(x, weight)
    joined = torch.cat([top, rows], 1) + 1
    joined *= 2
    for _ in range(2):
        joined = torch.tanh(joined)
    functional.gelu(y)
    loss = functional.cross_entropy(y, torch.tensor([1, 2, 3, 4])) + joined.sum() + half.sum() + auto.mean()
    torch.max(x, 1)
    x.masked_fill(x < 0, float("-inf"))
    torch.empty_like(x)
    loss.backward()


def main():
    root, task = Path(sys.argv[1]), sys.argv[2]
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    settings = {"task": task, "dump_path": str(root / task), "rank": [], "step": [], "level": "L1", task: section}
    (root / f"{task}.json").write_text(json.dumps(settings))
    debugger = PrecisionDebugger(config_path=str(root / f"{task}.json"))
    debugger.start()
    step()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()

"""Trains a small model under TrainerMonitorV2 of whichever tool this interpreter has: monitor_v2_scenario.py OUTPUT."""

import json
import os
import sys

import monitor_scenario
import torch
from msprobe.core.monitor_v2 import TrainerMonitorV2


def train(output):
    os.makedirs(output, exist_ok=True)
    torch.manual_seed(7)
    model = monitor_scenario.Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    kinds = {name: {"enabled": True} for name in ("module", "weight_grad", "optimizer", "param", "cc")}
    path = os.path.join(output, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"output_dir": output, "step_count_per_record": 2, "monitors": kinds}, file)
    monitor = TrainerMonitorV2(path, fr="pytorch")
    monitor.start(model=model, optimizer=optimizer, grad_acc_steps=2)
    for _ in range(3):
        for _ in range(2):
            tokens = torch.randint(0, 20, (2, 6))
            torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    monitor.stop()


if __name__ == "__main__":
    train(sys.argv[1])

"""A small training whose calls are sent to a checker; prints the bits of its losses.

usage: online_scenario.py CONFIG STEPS CALLS    CONFIG: a config.json, or "none"; CALLS: more of them in each step
"""

import json
import sys

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.last(torch.nn.functional.gelu(self.first(x)))


def main():
    config, steps, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Block()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = None
    if config != "none":
        from msprobe.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(config)
    losses = []
    for _ in range(steps):
        x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
        if debugger:
            debugger.start()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        for number in range(calls):
            x = torch.tanh(x) if number % 2 else torch.sin(x)
        optimizer.zero_grad()
        (loss + 0 * x.sum()).backward()
        optimizer.step()
        losses.append(loss.item().hex())
        if debugger:
            debugger.stop()
            debugger.step()
    print(json.dumps(losses))


if __name__ == "__main__":
    main()

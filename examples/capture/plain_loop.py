"""A loop of your own: the block ends the step even when its body leaves early or raises.

python plain_loop.py config.json
"""

import sys

import tiny
import torch
from msprobe.pytorch import PrecisionDebugger, seed_all

seed_all(1234)
debugger = PrecisionDebugger(
    config_path=sys.argv[1]
)  # before the model is built and before functions are imported by name
model = tiny.model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for tokens in tiny.batches(4):
    with debugger.record(model):
        loss = model(input_ids=tokens, labels=tokens).loss
        if not torch.isfinite(loss):
            continue
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")

"""accelerate: the model that prepare() returns is the one to give to start().

python accelerate_loop.py config.json, or accelerate launch accelerate_loop.py config.json
"""

import sys

import tiny
import torch
from accelerate import Accelerator
from msprobe.pytorch import PrecisionDebugger, seed_all

seed_all(1234)
debugger = PrecisionDebugger(config_path=sys.argv[1])
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = tiny.model()
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))

for tokens in tiny.batches(4):
    with accelerator.accumulate(model):
        with debugger.record(model, step=False):
            loss = model(input_ids=tokens, labels=tokens).loss
            accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    if accelerator.sync_gradients:
        debugger.step()
        accelerator.print(f"loss {loss.item():.6f}")

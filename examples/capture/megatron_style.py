"""The loop of Megatron-LM, MindSpeed-LLM and ModelLink: several model chunks, several micro batches for each optimizer step.

start() and stop() stand around each micro batch and step() behind the optimizer, so that a step is an iteration and the numbers
of the ops count on from one micro batch to the next. In training.py the place is train(), around train_step().

python megatron_style.py config.json
"""

import sys

import tiny
import torch
from msprobe.pytorch import PrecisionDebugger, seed_all

MICRO_BATCHES = 2


def train(chunks, optimizer, data, iterations):
    for _ in range(iterations):
        optimizer.zero_grad()
        for _ in range(MICRO_BATCHES):
            with PrecisionDebugger.record(chunks, step=False):
                tokens = next(data)
                loss = sum(chunk(input_ids=tokens, labels=tokens).loss for chunk in chunks) / MICRO_BATCHES
                loss.backward()
        optimizer.step()
        PrecisionDebugger.step()
        print(f"loss {loss.item():.6f}")


seed_all(1234)
PrecisionDebugger(config_path=sys.argv[1])
chunks = [tiny.model(), tiny.model()]  # virtual pipeline stages: names begin with Module.0. and Module.1.
optimizer = torch.optim.SGD([p for chunk in chunks for p in chunk.parameters()], lr=0.1)
train(chunks, optimizer, iter(tiny.batches(4)), iterations=2)

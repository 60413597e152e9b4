"""Inference, a step for each token: step0 is the prompt, and `step` of the configuration chooses among them.

For a sampling loop of your own; in transformers it belongs in the loop of GenerationMixin._sample.

python token_steps.py config.json
"""

import sys

import tiny
import torch
from msprobe.pytorch import PrecisionDebugger

debugger = PrecisionDebugger(config_path=sys.argv[1])
model = tiny.model().eval()
tokens = tiny.batches(1, size=1)[0]
with torch.no_grad():
    for _ in range(4):
        with debugger.record(model):
            logits = model(input_ids=tokens).logits
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
print(tokens[0].tolist())

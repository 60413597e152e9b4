"""Inference: the forwards of some tokens, counted from 0 (the prompt), both included. No change to transformers.

python generate_per_token.py config.json
"""

import sys

import tiny
import torch
from msprobe.pytorch import PrecisionDebugger

debugger = PrecisionDebugger(config_path=sys.argv[1])
model = tiny.model().eval()
prompt = tiny.batches(1, size=1)[0]

debugger.start(model=model, token_range=[1, 2])  # the second and the third token
with torch.no_grad():
    tokens = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, do_sample=False, pad_token_id=0
    )
debugger.stop()
debugger.step()
print(tokens[0].tolist())

"""FSDP2 (fully_shard): each rank writes a directory of its own, step0/rank0, step0/rank1, ...

torchrun --nproc_per_node 2 fsdp.py config.json
"""

import sys

import tiny
import torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger, seed_all
from torch.distributed.fsdp import fully_shard

seed_all(1234)
debugger = PrecisionDebugger(config_path=sys.argv[1])
dist.init_process_group("gloo")
mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
model = tiny.model()
for layer in model.model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for tokens in tiny.batches(2):
    with debugger.record(model):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"loss {loss.item():.6f}")
dist.destroy_process_group()

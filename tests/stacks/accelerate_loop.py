"""A loop of Accelerate on processes of gloo, two micro batches a step: `accelerate_loop.py DIRECTORY [--fault]`."""

import sys

import torch
from accelerate import Accelerator
from small import MICRO, ROWS, Net, Told, data

# msprobe: from msprobe.pytorch import PrecisionDebugger
# msprobe: debugger = PrecisionDebugger(config_path="config.json")
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=MICRO)
net, told = Net(), Told()
loader = torch.utils.data.DataLoader(data(accelerator.num_processes), batch_size=ROWS)
model, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=0.01), loader)
told.watch(dict(net.named_parameters()))
torch.manual_seed(5)
for x, y in loader:
    told.saw(x)
    # msprobe: debugger.start(model=model)
    with accelerator.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    # msprobe: debugger.stop()
    # msprobe: if accelerator.sync_gradients:
    # msprobe:     debugger.step()
    told.lost(loss)
told.write(sys.argv[1], accelerator.process_index, net.parameters())
accelerator.end_training()

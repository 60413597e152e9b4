"""DeepSpeed ZeRO on processes of gloo, two micro batches a step: `deepspeed_zero.py DIRECTORY STAGE [--fault]`."""

import sys

import deepspeed
import torch
from deepspeed.utils import safe_get_full_grad
from small import MICRO, ROWS, Net, Told, data, norm

# msprobe: from msprobe.pytorch import PrecisionDebugger
# msprobe: debugger = PrecisionDebugger(config_path="config.json")
torch.set_num_threads(1)
deepspeed.init_distributed("gloo", verbose=False)
rank, ranks, stage = torch.distributed.get_rank(), torch.distributed.get_world_size(), int(sys.argv[2])
net, told = Net(), Told()
decayed = [p for p in net.parameters() if p.ndim > 1]
plain = [p for p in net.parameters() if p.ndim == 1]
optimizer = torch.optim.AdamW([{"params": decayed}, {"params": plain, "weight_decay": 0.0}], lr=0.01)
config = {
    "train_micro_batch_size_per_gpu": ROWS,
    "gradient_accumulation_steps": MICRO,
    "gradient_clipping": 1.0,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0, "reduce_bucket_size": 1000},
}
model, *_ = deepspeed.initialize(model=net, optimizer=optimizer, config=config)
sampler = torch.utils.data.DistributedSampler(data(ranks), ranks, rank, shuffle=False)
torch.manual_seed(5)
for x, y in torch.utils.data.DataLoader(data(ranks), batch_size=ROWS, sampler=sampler):
    told.saw(x)
    # msprobe: debugger.start(model=model)
    loss = torch.nn.functional.mse_loss(model(x), y)
    model.backward(loss)
    last = model.is_gradient_accumulation_boundary()
    if last:
        told.gradients.append({name: norm(safe_get_full_grad(p)) for name, p in net.named_parameters()})
    model.step()
    # msprobe: debugger.stop()
    # msprobe: if last:
    # msprobe:     debugger.step()
    told.lost(loss)
with deepspeed.zero.GatheredParameters(list(net.parameters()), enabled=stage == 3):
    told.write(sys.argv[1], rank, net.parameters())
torch.distributed.destroy_process_group()

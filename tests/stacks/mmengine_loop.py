"""EpochBasedTrainLoop of mmengine, two micro batches a step: `mmengine_loop.py DIRECTORY [--insert] [--fault]`.

`--insert`: mmengine/runner/loops.py is read with the lines of insertions.py in it.
"""

import os
import sys

import torch
from insertions import read_edited
from small import MICRO, ROWS, Net, Told, data

if "--insert" in sys.argv:
    read_edited("mmengine.runner.loops")
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner

if not torch.cuda.is_available():
    torch.cuda.set_device = lambda device: None  # its launcher calls it whatever the backend is
torch.set_num_threads(1)
told = Told()
ranks = int(os.environ.get("WORLD_SIZE", "1"))


class Fit(BaseModel):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, y, mode="loss"):
        told.saw(x)
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        return {"loss": loss}


class Watch(Hook):
    def before_train(self, runner):
        told.watch({name.removeprefix("module."): p for name, p in runner.model.named_parameters()})

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        told.lost(outputs["loss"])

    def after_train(self, runner):
        told.write(sys.argv[1], runner.rank, runner.model.parameters())


Runner(
    model=Fit(),
    work_dir="work",
    train_dataloader={
        "batch_size": ROWS,
        "dataset": data(ranks),
        "sampler": {"type": "DefaultSampler", "shuffle": False},
        "collate_fn": {"type": "default_collate"},
    },
    train_cfg={"by_epoch": True, "max_epochs": 1},
    optim_wrapper={
        "optimizer": {"type": "AdamW", "lr": 0.01},
        "accumulative_counts": MICRO,
        "clip_grad": {"max_norm": 1.0},
    },
    custom_hooks=[Watch()],
    default_hooks={"logger": None, "checkpoint": None, "runtime_info": None},
    cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}} if ranks > 1 else None,
    launcher="pytorch" if ranks > 1 else "none",
    env_cfg={"dist_cfg": {"backend": "gloo"}},
    randomness={"seed": 5},
    log_level="ERROR",
).train()

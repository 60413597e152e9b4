"""A Trainer of Lightning on processes of gloo, two micro batches a step: `lightning_fit.py DIRECTORY [--fault]`."""

import logging
import os
import sys
import warnings

import lightning
import torch
from small import MICRO, ROWS, STEPS, Net, Told, data

# msprobe: from msprobe.pytorch import PrecisionDebugger
# msprobe: debugger = PrecisionDebugger(config_path="config.json")
# msprobe:
# msprobe: class Capture(lightning.Callback):
# msprobe:     def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
# msprobe:         debugger.start(model=trainer.model)
# msprobe:
# msprobe:     def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
# msprobe:         debugger.stop()
# msprobe:         if (batch_idx + 1) % trainer.accumulate_grad_batches == 0:
# msprobe:             debugger.step()
# msprobe:
callbacks = []
# msprobe: callbacks.append(Capture())
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
told = Told()


class Fit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        told.saw(x)
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        told.lost(loss)
        return loss

    def validation_step(self, batch, batch_idx):
        torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


torch.set_num_threads(1)
ranks = int(os.environ.get("WORLD_SIZE", "1"))
fit = Fit()
told.watch(dict(fit.net.named_parameters()))
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=ranks,
    strategy="ddp" if ranks > 1 else "auto",
    max_steps=STEPS,
    accumulate_grad_batches=MICRO,
    gradient_clip_val=1.0,
    callbacks=callbacks,
    val_check_interval=MICRO,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
torch.manual_seed(5)
loaders = [torch.utils.data.DataLoader(data(ranks), batch_size=ROWS) for _ in range(2)]
trainer.fit(fit, loaders[0], loaders[1])
told.write(sys.argv[1], trainer.global_rank, fit.parameters())

"""A small ResNet of MindCV under create_trainer(): `mindcv_train.py DIRECTORY [--monitor] [--fault]`.

With MindSpore 2.10 its gradient accumulation raises at the end of the first step, whoever runs it: one micro batch a step.
"""

import sys

import mindspore as ms
import numpy as np
from mindcv.loss import create_loss
from mindcv.models.resnet import BasicBlock, ResNet
from mindcv.optim import create_optimizer
from mindcv.utils import create_trainer
from mindspore_told import ROWS, STEPS, Told, monitored

# msprobe: from msprobe.mindspore import MsprobeStep, PrecisionDebugger
# msprobe: debugger = PrecisionDebugger(config_path="config.json")
ms.set_seed(1)
np.random.seed(1)
told, network = Told(), ResNet(BasicBlock, [1, 1, 1, 1], num_classes=4)
if "--fault" in sys.argv:
    network.layer2[0].conv1.weight.set_data(network.layer2[0].conv1.weight * 1.25)


class Watch(ms.Callback):
    def on_train_step_end(self, run_context):
        told.lost(run_context.original_args().net_outputs)


random = np.random.default_rng(0)
rows = [
    (random.standard_normal((3, 32, 32)).astype(np.float32), np.int32(random.integers(4))) for _ in range(STEPS * ROWS)
]
data = ms.dataset.GeneratorDataset(rows, ["data", "label"], shuffle=False).batch(ROWS)
optimizer = create_optimizer(network.trainable_params(), opt="adamw", lr=0.01, weight_decay=0.01)
told.watch(network.conv1, optimizer)
monitored(network, optimizer)
callbacks = [Watch()]
# msprobe: callbacks.append(MsprobeStep(debugger))
trainer = create_trainer(network, create_loss("CE"), optimizer, {}, "O0", None, "fixed", clip_grad=True, clip_value=1.0)
trainer.train(1, data, callbacks=callbacks, dataset_sink_mode=False)
told.write(sys.argv[1], network)

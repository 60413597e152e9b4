"""Trains the same network with MindSpore, with a yaml and a log as MindFormers has them."""

import argparse
import ast
import os
import sys

os.environ.setdefault("GLOG_v", "4")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mindspore as ms
import network
import numpy as np
from adamw_mindspore import AdamW, clip, set_rate
from capture import weight_of
from toy_text import batch, save_batch

parser = argparse.ArgumentParser()
parser.add_argument("--config")
parser.add_argument("--save-init", default="")
parser.add_argument("--save-data", default="")
args = parser.parse_args()


def read_yaml(path):
    """Maps in maps and plain values: MindSpore's environment has no yaml."""
    out = {}
    open_maps = [(-1, out)]
    for line in open(path):
        if not line.strip():
            continue
        indent, (key, _, value) = len(line) - len(line.lstrip()), line.strip().partition(":")
        while open_maps[-1][0] >= indent:
            open_maps.pop()
        value = value.strip()
        if not value:
            open_maps[-1][1][key] = {}
            open_maps.append((indent, open_maps[-1][1][key]))
        else:
            try:
                open_maps[-1][1][key] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                open_maps[-1][1][key] = value
    return out


config = read_yaml(args.config)
model_config = config["model"]["model_config"]
seed = config["seed"]
ms.set_context(mode=ms.PYNATIVE_MODE, deterministic="ON")
ms.set_seed(seed)
np.random.seed(seed)


def build():
    network.WORDS, network.ROPE_BASE = model_config["vocab_size"], float(model_config["theta"])
    model = network.make()
    for name, parameter in model.parameters_and_names():
        parameter.set_data(ms.Tensor(weight_of(network, name, parameter.shape)))
    for _, cell in model.cells_and_names():
        if type(cell).__name__ == "RMSNorm":
            cell.eps = float(model_config["rms_norm_eps"])
    return model.set_train()


def rate_of(step):
    schedule = config["lr_schedule"]
    rate, warmup = float(schedule["learning_rate"]), int(schedule.get("warmup_steps", 0))
    return rate * (step + 1) / warmup if step < warmup else rate


def main():
    model = build()
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)
    own = config["optimizer"]
    optimizer = AdamW(
        model.trainable_params(),
        float(config["lr_schedule"]["learning_rate"]),
        [float(b) for b in own["betas"]],
        float(own["eps"]),
        float(own["weight_decay"]),
    )
    gradients_of = ms.value_and_grad(
        lambda tokens, labels: network.loss(model, tokens, labels), None, model.trainable_params()
    )
    steps = config["runner_config"]["sink_size"]
    for step in range(steps):
        tokens, labels = batch(step, model_config["vocab_size"], seed)
        if args.save_data:
            save_batch(args.save_data, step, tokens, labels)
        rate = rate_of(step)
        set_rate(optimizer, rate)
        loss, gradients = gradients_of(ms.Tensor(tokens.astype(np.int32)), ms.Tensor(labels.astype(np.int32)))
        gradients, norm = clip(gradients, float(config["runner_wrapper"]["max_grad_norm"]))
        optimizer(gradients)
        print(
            f"INFO - {{ Epoch:[  1/  1], step:[{step + 1:5d}/{steps:5d}], loss: {float(loss.asnumpy()):.6f}, "
            f"per_step_time: 1ms, lr: {rate:.6e}, overflow cond: False, loss_scale: 1.0, global_norm: [{norm:.6f}]",
            flush=True,
        )


main()

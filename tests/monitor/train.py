"""Trains a small model under the monitor, with or without a planted fault: python train.py CASE.json OUTPUT."""

import json
import math
import os
import sys

import torch
import torch.distributed as dist
from faults import Fault, Planted
from models import Data, Shape, make_model

CONFIG = {
    "targets": {},
    "xy_distribution": True,
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "ur_distribution": True,
    "mg_direction": True,
    "ops": ["norm", "min", "max", "mean"],
    "format": "api",
}


class Step:
    """Puts the change of the weights of one layer into the step of the optimizer, so that the monitor sees it as one."""

    def __init__(self, optimizer, planted):
        self.step = -1
        optimizer.register_step_post_hook(lambda *_: planted.stepped(self.step))


def rate(step, steps, shape):
    """Linear warm-up of 50 steps, then a cosine to a tenth, or constant."""
    if step < 50:
        return shape.lr * (step + 1) / 50
    if shape.schedule == "constant":
        return shape.lr
    return shape.lr * (0.55 + 0.45 * math.cos(math.pi * (step - 50) / max(steps - 50, 1)))


def make_optimizer(model, shape):
    """AdamW, or stochastic gradient descent with momentum."""
    if shape.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=shape.lr, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), lr=shape.lr, betas=(0.9, 0.99), weight_decay=0.01)


def reduce_gradients(model, left_out, ranks):
    """Averages the gradients of all ranks, but those left out."""
    wanted = [p for n, p in model.named_parameters() if n not in left_out and p.grad is not None]
    flat = torch.cat([p.grad.view(-1) for p in wanted])
    dist.all_reduce(flat)
    flat /= ranks
    at = 0
    for p in wanted:
        p.grad.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()


def train(rank, ranks, case, output):
    """One rank of a training.

    Args:
        rank: Its number.
        ranks: How many there are.
        case: {"shape", "seed", "steps", "until", "fault", "config", "ranks", "bare"}; steps is the length of the schedule,
            until where the run ends, bare one without the monitor.
        output: The directory of the run.
    """
    torch.set_num_threads(1)
    os.environ["MONITOR_OUTPUT_DIR"] = output
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{output}/meeting", rank=rank, world_size=ranks)
    from msprobe.pytorch import TrainerMon

    shape = Shape(**case["shape"])
    torch.manual_seed(case["seed"])
    model = make_model(shape)
    data = Data(shape, case["seed"])
    optimizer = make_optimizer(model, shape)
    fault = Fault(**case["fault"]) if case.get("fault") else None
    planted = Planted(fault, model, optimizer, rank)
    hook = Step(optimizer, planted)
    path = os.path.join(output, f"monitor{rank}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**CONFIG, **case.get("config", {})}, file)
    monitor = None if case.get("bare") else TrainerMon(path, params_have_main_grad=False)
    if monitor is not None:
        monitor.set_monitor(model, optimizer, grad_acc_steps=shape.accumulate)
    losses = []
    for step in range(case["until"]):
        hook.step = step
        for group in optimizer.param_groups:
            group["lr"] = rate(step, case["steps"], shape)
        planted.forward(step)
        total = 0.0
        for micro in range(shape.accumulate):
            inputs, target = planted.batch(step, micro, data, rank)
            loss = model.loss(inputs, target)
            total += loss.item() / shape.accumulate
            (planted.loss(step, loss) / shape.accumulate).backward()
            if micro + 1 < shape.accumulate:
                planted.between_micros(step, micro)
        planted.backward(step)
        if ranks > 1:
            reduce_gradients(model, planted.unreduced(step), ranks)
            together = torch.tensor(total)
            dist.all_reduce(together)
            total = float(together) / ranks
        planted.reduced(step)
        torch.nn.utils.clip_grad_norm_(model.parameters(), planted.clip(step, shape.clip))
        planted.clipped(step)
        losses.append(total)
        optimizer.step()
        optimizer.zero_grad()
    if monitor is not None:
        monitor.close()
    if rank == 0:
        with open(os.path.join(output, "loss.csv"), "w", encoding="utf-8") as file:
            file.write("step,loss\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(losses)))


def run(case, output):
    """A whole run in this process, or in one for each rank."""
    os.makedirs(output, exist_ok=True)
    ranks = case.get("ranks", 1)
    if ranks == 1:
        train(0, 1, case, output)
        return
    output = os.path.abspath(output)
    torch.multiprocessing.start_processes(train, args=(ranks, case, output), nprocs=ranks, start_method="fork")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as given:
        run(json.load(given), sys.argv[2])

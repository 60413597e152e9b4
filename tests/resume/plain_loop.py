"""A training loop that saves everything after three steps; --lose leaves out what a resume should have restored."""

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch
from samples import Samples
from torch import nn

SAVE_AT, STEPS = 3, 7


class Average:
    """The moving average of the weights."""

    def __init__(self, model):
        self.shadow = {name: value.detach().clone() for name, value in model.named_parameters()}

    def update(self, model):
        for name, value in model.named_parameters():
            self.shadow[name].mul_(0.9).add_(value.detach(), alpha=0.1)


class Curriculum:
    """How hard the samples are by now."""

    def __init__(self):
        self.difficulty, self.seen = 0.0, 0

    def advance(self, count):
        self.seen += count
        self.difficulty = self.seen / (self.seen + 100)

    def state_dict(self):
        return {"difficulty": self.difficulty, "seen": self.seen}

    def load_state_dict(self, state):
        self.difficulty, self.seen = state["difficulty"], state["seen"]


class Speed:
    """Of no importance to the training, and in no checkpoint."""

    def __init__(self):
        self.began, self.steps, self.total = time.time(), 0, torch.zeros(())

    def count(self, loss):
        self.steps += 1
        self.total += loss.detach()


class Noise:
    """Draws from a generator that no dictionary of attributes holds."""

    __slots__ = ("rng",)

    def __init__(self):
        self.rng = np.random.default_rng(11)


def scales(states):
    """An iterator whose generator is a variable of its own; its state goes to and comes from a list."""
    rng = np.random.default_rng(12)
    while True:
        if states:
            rng.bit_generator.state = states.pop()
        scale = float(rng.uniform(0.99, 1.01))
        yield scale, lambda: rng.bit_generator.state


def restore(checkpoint, lose, parts):
    """Puts back what the checkpoint holds, but for what `lose` names."""
    for name, part in parts.items():
        if name not in lose:
            part.load_state_dict(checkpoint[name])
    if "head" in lose:
        with torch.no_grad():
            parts["model"][4].weight.copy_(nn.Linear(16, 3).weight)
    if "statistics" in lose:
        parts["model"][1].reset_running_stats()
    if "rounded" in lose:
        for state in parts["optimizer"].state.values():
            state["exp_avg"] = state["exp_avg"].bfloat16().float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--lose", default="", help="names, with commas between")
    parser.add_argument("--global-order", action="store_true", help="the loader draws from the global generator")
    parser.add_argument("--late", action="store_true", help="restores that generator after the loader has drawn")
    parser.add_argument("--by-itself", action="store_true", help="resumes where there is a checkpoint")
    parser.add_argument("--held", action="store_true", help="draws from generators that slots and iterators hold")
    parser.add_argument("--epoch", action="store_true", help="saves at the end of an epoch")
    given = parser.parse_args()
    lose = given.lose.split(",")
    torch.set_num_threads(1)
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    average, curriculum, speed, history = Average(model), Curriculum(), Speed(), []
    noise, states = (Noise() if given.held else None), []
    source = scales(states) if given.held else None
    order = None if given.global_order else torch.Generator().manual_seed(7)
    size = 22 if given.epoch else 8
    loader = torch.utils.data.DataLoader(Samples(), batch_size=size, shuffle=True, generator=order)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "curriculum": curriculum}
    path = Path(given.out) / "checkpoint.pt"
    step = skip = 0
    checkpoint = None
    if given.resume or (given.by_itself and path.exists()):
        checkpoint = torch.load(path, weights_only=False)
        restore(checkpoint, lose, parts)
        if "average" not in lose:
            average.shadow = checkpoint["average"]
        if given.held and "slots" not in lose:
            noise.rng.bit_generator.state = checkpoint["noise"]
        if given.held and "iterator" not in lose:
            states.append(checkpoint["scale"])
        step = checkpoint["step"]
        skip = 0 if "position" in lose else checkpoint["in_epoch"]
        if order is not None:
            order.set_state(checkpoint["order"])
        elif "torch" not in lose and not given.late:
            torch.set_rng_state(checkpoint["torch"])
    while step < STEPS:
        at_epoch = torch.get_rng_state()  # a script may keep a copy that it does not need
        order_state = None if order is None else order.get_state()
        for number, (inputs, labels) in enumerate(loader):
            if number < skip:
                continue
            if checkpoint is not None:
                if "torch" not in lose and (given.late or not given.global_order):
                    torch.set_rng_state(checkpoint["torch"])
                if "python" not in lose:
                    random.setstate(checkpoint["python"])
                if "numpy" not in lose:
                    np.random.set_state(checkpoint["numpy"])
                checkpoint, skip = None, 0
            noisy = inputs + random.random() * 0.01 + float(np.random.rand()) * 0.01 * curriculum.difficulty
            if given.held:
                scale, scale_state = next(source)
                noisy = noisy * scale + float(noise.rng.normal()) * 0.01
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(noisy), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            average.update(model)
            curriculum.advance(len(labels))
            speed.count(loss)
            history.append(loss.item())
            step += 1
            if step == SAVE_AT:
                ended = number + 1 == len(loader)
                state = {name: part.state_dict() for name, part in parts.items()}
                state.update(average=average.shadow, step=step, in_epoch=0 if ended else number + 1)
                state.update(torch=torch.get_rng_state(), python=random.getstate(), numpy=np.random.get_state())
                state.update(order=order_state if order is None or not ended else order.get_state(), at_epoch=at_epoch)
                if given.held:
                    state.update(noise=noise.rng.bit_generator.state, scale=scale_state())
                torch.save(state, path)
            if step == STEPS:
                break


main()

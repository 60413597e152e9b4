"""Two ranks with DistributedDataParallel, each with random states of its own; --lose leaves out what a resume restores."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from samples import Samples
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--lose", default="")
    given = parser.parse_args()
    lose = given.lose.split(",")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    sampler = torch.utils.data.DistributedSampler(Samples(), shuffle=True, seed=3)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=16, sampler=sampler)  # two steps an epoch
    torch.manual_seed(10 + rank)
    step = epoch = skip = 0
    states = None
    path = Path(given.out) / "checkpoint.pt"
    if given.resume:
        state = torch.load(path, weights_only=False)
        model.module.load_state_dict(state["model"])
        if "optimizer" not in lose:
            optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        epoch, skip = (0, 0) if "epoch" in lose else divmod(step, 2)
        states = state["torch"]
    while step < 7:
        sampler.set_epoch(epoch)
        for number, (inputs, labels) in enumerate(loader):
            if number < skip:
                continue
            if states is not None:
                torch.set_rng_state(states[0 if "rank" in lose else rank])
                states, skip = None, 0
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            step += 1
            if step == 3:
                gathered = [None, None]
                dist.all_gather_object(gathered, torch.get_rng_state())
                if rank == 0:
                    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                    torch.save({**state, "torch": gathered}, path)
                dist.barrier()
            if step == 7:
                break
        epoch += 1
    dist.destroy_process_group()


main()

"""A training loop that repeats itself bit by bit, alone or with others; --fault takes something of that away."""

import argparse
import concurrent.futures
import os
import random
import time

import numpy as np
import torch
from torch import nn

STEPS = 4


class ByThreads(torch.autograd.Function):
    """A sum of rows that threads add up as they get ready, as atomic additions do."""

    @staticmethod
    def forward(ctx, rows, order):
        ctx.shape = rows.shape
        total = torch.zeros(rows.shape[1])
        for index in order(range(rows.shape[0])):
            total += rows[index]
        return total

    @staticmethod
    def backward(ctx, gradient):
        return gradient.expand(ctx.shape), None


def as_they_get_ready(indices):
    """Returns the numbers in the order in which threads have finished with them."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        noise = random.SystemRandom()
        waits = [pool.submit(lambda i=i: time.sleep(noise.random() / 200) or i) for i in indices]
        return [done.result() for done in concurrent.futures.as_completed(waits)]


class Net(nn.Module):
    def __init__(self, order, labels):
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Dropout(0.2)
        self.heads = nn.ModuleDict({label: nn.Linear(32, 3) for label in labels})
        self.order = order

    def forward(self, x):
        hidden = self.drop(torch.relu(self.norm(self.first(x))))
        out = sum(head(hidden) for head in self.heads.values())
        return out + ByThreads.apply(out * 1e3, self.order) * 1e-6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without what threads and sets would do")
    given = parser.parse_args()
    fault = given.fault
    torch.set_num_threads(given.threads)
    rank = int(os.environ.get("RANK", "0"))
    together = "WORLD_SIZE" in os.environ
    if together:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    words = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}
    labels = list(words) if fault == "set" else sorted(words)
    model = Net(as_they_get_ready if fault == "threads" else list, labels[:4])
    if fault == "dropout" or (fault == "rank1" and rank == 1):
        torch.seed()
    if fault == "numpy":
        np.random.seed()
    if fault == "python":
        random.seed()
    wrapped = nn.parallel.DistributedDataParallel(model) if together else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    samples = torch.randn(STEPS * 16, 8, generator=torch.Generator().manual_seed(5 + rank))
    labels = torch.randint(0, 3, (STEPS * 16,), generator=torch.Generator().manual_seed(6 + rank))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(samples, labels),
        batch_size=16,
        shuffle=True,
        num_workers=given.workers,
        generator=torch.Generator().manual_seed(7),
    )
    began = time.time()
    for step, (inputs, wanted) in enumerate(loader):
        if fault == "clock":
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 * (1 + time.time() % 1 / 100)
        mixed = (
            inputs * random.uniform(0.99, 1.01) + torch.from_numpy(np.random.standard_normal((16, 8))).float() * 0.01
        )
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(wrapped(mixed), wanted)
        loss.backward()
        if fault == "process":
            for parameter in model.parameters():
                parameter.grad.mul_(1 + os.getpid() % 1009 * 1e-6)
        optimizer.step()
        print(f"step {step} loss {loss.item():.9f} after {time.time() - began:.3f} s", flush=True)
    if together:
        torch.distributed.destroy_process_group()


main()

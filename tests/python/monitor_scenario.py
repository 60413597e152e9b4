"""Trains a small model under TrainerMon of whichever tool this interpreter has: monitor_scenario.py CASE OUTPUT [off].

It prints one JSON object: losses, checksums of the parameters, and of the state of the generator.
"""

import hashlib
import json
import os
import sys

import torch
from torch import nn

STEPS = 4
ALL = {
    "xy_distribution": True,
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "ops": ["norm", "min", "max", "mean", "nans", "zeros"],
    "ndigits": 20,
}
# case -> (changes to the configuration, backward passes of a step, ranks)
CASES = {
    "plain": ({}, 1, 1),
    "micro": ({}, 2, 1),
    "mbs": ({"monitor_mbs_grad": True}, 2, 1),
    "interval": ({"step_interval": 2, "start_step": 1, "step_count_per_record": 3, "ndigits": 6}, 1, 1),
    "targets": ({"targets": {"block.fc1": {}, "head": {}}, "ops": ["min", "nans"]}, 1, 1),
    "direction": ({"mg_direction": True, "xy_distribution": False}, 1, 1),
    "main_grad": ({}, 2, 1),
    "ddp": ({}, 1, 2),
    "ddp_micro": ({"monitor_mbs_grad": True}, 2, 2),
    "fsdp1": ({}, 1, 2),
    "fsdp2": ({}, 1, 2),
    "fsdp2_micro": ({"monitor_mbs_grad": True}, 2, 2),
    "zero": ({}, 1, 2),
    "squash": ({"squash_name": True}, 1, 1),
}


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        weights = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2), -1)
        return self.out(weights @ self.v(x)), weights


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, scale=None):
        x = x + self.attention(self.norm(x))[0]
        return x + self.fc2(torch.relu(self.fc1(x)))


class Model(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(20, width)
        self.block = Block(width)
        self.layers = nn.ModuleList([Block(width)])
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width, 20, bias=False)

    def forward(self, tokens):
        x = self.block(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.drop(x))


def add_main_grads(model):
    """As Megatron-LM: the gradient is added to main_grad when it is there, and .grad is dropped."""
    model.accumulators = []
    for parameter in model.parameters():
        parameter.main_grad = torch.zeros_like(parameter)
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]

        def add(*_, parameter=parameter):
            parameter.main_grad.add_(parameter.grad)
            parameter.grad = None

        node.register_hook(add)
        model.accumulators.append(node)


def wrap(case, model):
    if case.startswith("ddp") or case == "zero":
        return nn.parallel.DistributedDataParallel(model)
    if case == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))
    if case.startswith("fsdp2"):
        from torch.distributed.fsdp import fully_shard

        for part in (model.block, *model.layers):
            fully_shard(part)
        return fully_shard(model)
    return model


def train(case, output, monitored):
    changes, micro_batches, ranks = CASES[case]
    rank = int(os.environ.get("RANK", 0))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(7)
    model = Model()
    if case == "main_grad":
        add_main_grads(model)
    model = wrap(case, model)
    if case == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-2)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if monitored:
        from msprobe.pytorch import TrainerMon

        path = os.path.join(output, f"config{rank}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"targets": {}, **ALL, **changes}, file)
        monitor = TrainerMon(path, None, params_have_main_grad=case == "main_grad")
        monitor.set_monitor(model, optimizer, grad_acc_steps=micro_batches)
    losses = []
    torch.manual_seed(100 + rank)
    for _ in range(STEPS):
        for _ in range(micro_batches):
            tokens = torch.randint(0, 20, (2, 6))
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()) / micro_batches
            loss.backward()
            losses.append(loss.item().hex())
        if case == "main_grad":
            for parameter in model.parameters():
                parameter.grad = parameter.main_grad
        elif not case.startswith("fsdp"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if case == "main_grad":
            for parameter in model.parameters():
                parameter.main_grad.zero_()
                parameter.grad = None
        optimizer.zero_grad()
    state = hashlib.sha256()
    for parameter in model.parameters():
        local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
        state.update(local.detach().numpy().tobytes())
    generator = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
    with open(os.path.join(output, f"result{rank}.json"), "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "parameters": state.hexdigest(), "generator": generator}, file)
    if ranks > 1:
        torch.distributed.destroy_process_group()


def main():
    case, output = sys.argv[1:3]
    torch.set_num_threads(1)
    os.makedirs(output, exist_ok=True)
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(output, "monitor")
    ranks = CASES[case][2]
    if ranks > 1 and "RANK" not in os.environ:
        import socket
        import subprocess

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
        children = [
            subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **where, "RANK": str(rank)})
            for rank in range(ranks)
        ]
        sys.exit(max(child.wait() for child in children))
    train(case, output, sys.argv[3:] != ["off"])


if __name__ == "__main__":
    main()

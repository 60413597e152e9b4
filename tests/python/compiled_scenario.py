"""Trainings with compiled parts, watched or not: prints what they computed and how often the compiler was asked.

python compiled_scenario.py SHAPE BACKEND WATCHER [DIRECTORY]

A watcher that ends with "_ended" is gone after half of the steps.
"""

import hashlib
import json
import sys

import torch
import torch._dynamo
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

STEPS = 6
SEEN: list = []


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + F.dropout(self.down(F.gelu(self.up(self.norm(x)))), 0.1, self.training)


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.blocks = nn.ModuleList([Block(), SelfAttention(), Block()])
        self.head = nn.Linear(16, 11)
        self.recomputes = False

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputes else block(x)
        return self.head(x)


def of_shape(shape, backend, model, optimizer):
    """(what computes the outputs, what steps) of the training."""
    options = {"mode": "reduce-overhead"} if backend == "reduce-overhead" else {"backend": backend}
    forward, step = model, optimizer.step
    if shape == "whole":
        forward = torch.compile(model, **options)
    elif shape == "fullgraph":
        forward = torch.compile(model, fullgraph=True, **options)
    elif shape == "recomputed":  # within the region
        model.recomputes = True
        forward = torch.compile(model, **options)
    elif shape == "one_part":
        model.blocks[1].compile(**options)
    elif shape == "in_place":
        model.compile(**options)
    elif shape == "parts":
        model.blocks[0] = torch.compile(model.blocks[0], **options)
        for block in model.blocks[1:]:
            block.compile(**options)
    elif shape == "function":
        forward = torch.compile(lambda tokens: model(tokens) * 2, **options)
    elif shape == "crowded":  # the user has hooks in it
        model.blocks[0].register_forward_hook(lambda module, args, output: output * 1.5)
        model.blocks[0].up.register_forward_pre_hook(lambda module, args: (args[0] * 0.5,))
        forward = torch.compile(model, **options)
    elif shape == "tensor_hook":
        model.head.weight.register_hook(lambda g: g * 2)
        forward = torch.compile(model, **options)
    elif shape == "broken":  # a break of the graph in the middle of a module, and a function left alone
        original = model.blocks[1].forward

        def broken(x):
            torch._dynamo.graph_break()
            return original(x)

        model.blocks[1].forward = broken
        forward = torch.compile(model, **options)
    elif shape == "branch":  # which way it goes depends on what was computed: the graph breaks there
        calculate = model.blocks[1].forward

        def branching(x):
            y = calculate(x)
            return y * 1.25 if y.sum() > 0 else y * 0.75

        model.blocks[1].forward = branching
        forward = torch.compile(model, **options)
    elif shape == "dynamic":
        forward = torch.compile(model, dynamic=True, **options)
    elif shape == "optimizer":
        step = torch.compile(lambda: optimizer.step(), **options)
    elif shape == "optimizer_and_model":
        forward = torch.compile(model, **options)
        step = torch.compile(optimizer.step, **options)
    elif shape == "scaler":
        forward = torch.compile(model, **options)
        optimizer.step = torch.compile(optimizer.step, **options)
    elif shape == "train_step":
        pass
    elif shape == "shapes":
        forward = torch.compile(model, **options)
    elif shape == "autograd":
        torch._dynamo.config.compiled_autograd = True
        forward = torch.compile(model, **options)
    elif shape == "late":  # after some steps in eager, and forgotten once
        pass
    else:
        assert shape == "eager", shape
    return forward, step


def watch(watcher, directory, model, optimizer):
    """Begins to watch; returns (called before, called after a step)."""
    nothing = (lambda: None, lambda: None)
    if watcher in ("none", "command"):
        return nothing
    if watcher in ("L0", "L1", "mix"):
        from msprobe.pytorch import PrecisionDebugger

        with open(f"{directory}/config.json", "w") as file:
            config = {"task": "statistics", "level": watcher, "dump_path": f"{directory}/dump", "statistics": {}}
            json.dump(config, file)
        debugger = PrecisionDebugger(config_path=f"{directory}/config.json")

        def after():
            debugger.stop()
            debugger.step()

        return lambda: debugger.start(model=model), after
    if watcher == "v2":
        from msprobe.core.monitor_v2.trainer import TrainerMonitorV2

        with open(f"{directory}/v2.json", "w") as file:
            kinds = ("module", "weight_grad", "optimizer", "param")
            monitors = {kind: {"enabled": True, "ops": ["norm"]} for kind in kinds}
            json.dump(
                {"framework": "pytorch", "output_dir": f"{directory}/v2", "step_interval": 1, "monitors": monitors},
                file,
            )
        monitor = TrainerMonitorV2(f"{directory}/v2.json")
        monitor.start(model=model, optimizer=optimizer)
        return nothing
    from msprobe.pytorch import TrainerMon

    with open(f"{directory}/monitor.json", "w") as file:
        json.dump(config_of(watcher), file)
    SEEN.append(TrainerMon(f"{directory}/monitor.json"))
    SEEN[0].set_monitor(model, optimizer)
    return nothing


def config_of(kind):
    common = {"targets": {}, "ops": ["norm", "nans"], "format": "csv"}
    parts = {
        "monitor": {
            **{"all_xy": True, "xy_distribution": True, "input_distribution": True, "wg_distribution": True},
            **{"mv_distribution": True, "param_distribution": True, "ur_distribution": True, "stack_info": True},
            **{"mg_direction": True, "recording_l2_features": True},
            **{"l2_targets": {"linear_hook": [], "attention_hook": []}},
            **{"alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}], "dump": True}},
        },
        "laws": {"laws": True},
        "health": {"health": True},
    }
    parts["all"] = {**parts["monitor"], **parts["laws"], **parts["health"]}
    return {**common, **parts[kind]}


def main(shape, backend, watcher, directory="."):
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3, enabled=shape == "scaler")
    generator = torch.Generator().manual_seed(5)
    forward, step = model, optimizer.step
    if shape != "late":
        forward, step = of_shape(shape, backend, model, optimizer)
    watcher, ends = watcher.removesuffix("_ended"), watcher.endswith("_ended")
    before, after = watch(watcher, directory, model, optimizer)

    def pass_of(tokens):
        loss = F.cross_entropy(forward(tokens).flatten(0, 1), tokens.flatten())
        scaler.scale(loss).backward()
        return loss

    def step_of():
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if scaler.is_enabled():
            scaler.step(optimizer)
            scaler.update()
        else:
            step()
        optimizer.zero_grad()

    def train(tokens):
        loss = pass_of(tokens)
        step_of()
        return loss

    if shape == "train_step":
        train = torch.compile(train, backend=backend)
    out = []
    for number in range(STEPS):
        if shape == "late" and number == 2:
            forward = torch.compile(model, backend=backend)
        if shape == "late" and number == 4:
            torch._dynamo.reset()
        if ends and number == STEPS // 2:
            before, after = (lambda: None, lambda: None)
            for one in SEEN:
                one.close()
        length = 5 + (number % 3 * 2 if shape == "dynamic" else 0)
        tokens = torch.randint(0, 11, (2 + (number % 2 if shape == "shapes" else 0), length), generator=generator)
        before()
        if shape == "train_step":
            loss, bits = train(tokens), ""
        else:
            loss = pass_of(tokens)
            bits = hash_of([loss, *(p.grad for p in model.parameters())])
            step_of()
        after()
        out.append([loss.item(), bits, hash_of(model.parameters()), hash_of([torch.get_rng_state()])])
    for one in SEEN:
        one.close()
    compiled = {
        "graphs": counters["stats"]["unique_graphs"],
        "calls": counters["stats"]["calls_captured"],
        "frames": counters["frames"]["total"],
        "breaks": sum(counters["graph_break"].values()),
        "recompiles": sum(counters["recompiles"].values()),
        "autograd": counters["compiled_autograd"]["captures"],
    }
    print("OUT" + json.dumps([out, compiled]))


def hash_of(tensors):
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()[:12]


if __name__ == "__main__":
    main(*sys.argv[1:])

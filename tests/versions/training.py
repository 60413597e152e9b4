"""A training of a few steps that prints checksums of all that it computed, with a tool or without.

training.py [--config FILE] [--monitor FILE] [--import] [--compiled] [--ranks] [--steps N]
--config: of PrecisionDebugger; --monitor: of TrainerMon; --import: only imports the tool; --compiled: a part goes through
torch.compile (aot_eager); --ranks: DistributedDataParallel over gloo, as a launcher says in the environment.
"""

import argparse
import hashlib
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Double(torch.autograd.Function):
    """What a script defines itself."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.abs()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0].abs()


class Mixer(nn.Module):
    """Attention in one head and a gated unit, both with a branch around them."""

    def __init__(self, width, fused):
        super().__init__()
        self.fused = fused
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def forward(self, x, scale=1.0):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1)
            y = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + y * scale
        gate, value = self.up(x).split(x.shape[-1] * 2, dim=-1)
        return x + self.down(F.silu(gate) * value)


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(29, 16)
        self.blocks = nn.ModuleList(Mixer(16, fused) for fused in (True, False, True))
        self.head = nn.Linear(16, 29)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = self.blocks[0](x)
        x = checkpoint(self.blocks[1], x, use_reentrant=False)
        x = checkpoint(self.blocks[2], x, 0.5, use_reentrant=True)
        return F.cross_entropy(self.head(x).flatten(0, 1), tokens.roll(-1, 1).flatten())


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True)
        self.drop, self.out = nn.Dropout(0.25), nn.Linear(6, 4)

    def forward(self, x):
        x = self.act(self.norm(self.conv(x))) + 1
        x[:, 0] = x[:, 1] * 0.5
        x.mul_(1.5)
        best, where = F.max_pool2d(x, 2).flatten(2).sort(-1)
        return self.out(self.drop(best.mean(-1))).logsumexp(-1).mean() + where.float().mean() * 0


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.layer = (
            nn.GRU(5, 8, batch_first=True, bidirectional=True),
            nn.TransformerEncoderLayer(16, 2, 8, 0.0),
        )

    def forward(self, x):
        y, state = self.rnn(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layer(y)
        return torch.einsum("bti,bti->b", y.float(), y.float()).mean() + Double.apply(state).std()


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x):
        return torch.tanh(self.b(F.gelu(self.a(x)))).pow(2).sum()


class Whole(nn.Module):
    def __init__(self, compiled):
        super().__init__()
        self.text, self.image, self.sequence, self.part = Text(), Image(), Sequence(), Part()
        if compiled:
            self.part = torch.compile(self.part, backend="aot_eager")

    def forward(self, tokens, images, sequence):
        losses = self.text(tokens), self.image(images), self.sequence(sequence), self.part(sequence)
        return torch.stack(losses)


def checksum(tensors):
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(b"none" if tensor is None else tensor.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def train(asked):
    torch.set_num_threads(1)
    rank = 0
    if asked.ranks:
        torch.distributed.init_process_group("gloo")
        rank = torch.distributed.get_rank()
    torch.manual_seed(11)
    model = Whole(asked.compiled)
    net = nn.parallel.DistributedDataParallel(model) if asked.ranks else model
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    debugger = start_tools(asked, net, optimizer)
    generator, steps = torch.Generator().manual_seed(5 + rank), []
    for _ in range(asked.steps):
        tokens = torch.randint(0, 29, (2, 9), generator=generator)
        batch = tokens, *(torch.randn(*shape, generator=generator) for shape in ((2, 3, 6, 6), (3, 4, 5)))
        if debugger:
            debugger.start(model=net)
        losses = net(*batch)
        losses.sum().backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        gradients = checksum(p.grad for p in model.parameters())
        optimizer.zero_grad()
        if debugger:
            debugger.stop()
            debugger.step()
        state = checksum([*model.parameters(), *model.buffers()])
        steps.append([checksum([losses, norm]), gradients, state, checksum([torch.get_rng_state()])])
    if asked.ranks:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    print(f"RESULT {rank} {json.dumps(steps)}", flush=True)


def start_tools(asked, net, optimizer):
    if asked.bare_import:
        import msprobe.pytorch  # noqa: F401
    if asked.monitor:
        from msprobe.pytorch import TrainerMon

        TrainerMon(asked.monitor, params_have_main_grad=False).set_monitor(net, optimizer, grad_acc_steps=1)
    if asked.config:
        from msprobe.pytorch import PrecisionDebugger

        return PrecisionDebugger(config_path=asked.config)
    return None


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--monitor")
    parser.add_argument("--import", dest="bare_import", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    train(parser.parse_args(arguments))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Time of a training step with a tool over the same step without it, in one process.

Runs under any Python that has a package `msprobe` with the PyTorch face, ours or mindstudio-probe's, and prints one JSON object:

    python step_ratio.py --level mix --steps 30

Steps with and without the tool alternate; each ratio is taken against the mean of the two neighbouring steps without, and the median
of the ratios is given. A step with the tool runs from start() to the end of step(), all files written.
"""

import argparse
import copy
import json
import os
import shutil
import statistics
import tempfile
import time

import torch

LLAMAS = {
    # hidden, layers, sequence, batch, vocabulary
    "small": (256, 4, 128, 2, 1000),
    "big": (1024, 2, 512, 1, 1000),
    "tiny": (64, 2, 16, 1, 100),
}
MODELS = (*LLAMAS, "conv", "resnet18")


class Residual(torch.nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outside)
        self.conv2 = torch.nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outside)
        self.relu = torch.nn.ReLU(inplace=True)
        self.short = torch.nn.Identity()
        if stride != 1 or inside != outside:
            self.short = torch.nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.short(x))


def build_conv():
    """Residual blocks [2, 2, 2, 2] of 32 to 256 channels on 16 images of 64 x 64."""
    torch.manual_seed(0)
    layers, inside = [torch.nn.Conv2d(3, 32, 3, 1, 1)], 32
    for stage, outside in enumerate((32, 64, 128, 256)):
        for block in range(2):
            layers.append(Residual(inside, outside, 2 if stage and not block else 1))
            inside = outside
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(256, 10))
    images, labels = torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,))
    return model, (images, labels)


def build_resnet18():
    """The usual 18 layers of 64 to 512 channels on 4 images of 224 x 224."""
    torch.manual_seed(0)
    nn, inside = torch.nn, 64
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for outside in (64, 128, 256, 512):
        for block in range(2):
            layers.append(Residual(inside, outside, 2 if outside > 64 and not block else 1))
            if inside != outside:
                layers[-1].short = nn.Sequential(layers[-1].short, nn.BatchNorm2d(outside))
            inside = outside
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    images, labels = torch.randn(4, 3, 224, 224), torch.randint(0, 1000, (4,))
    return model, (images, labels)


def build(name, device="cpu"):
    """A model and what computes its loss, with inputs that do not change."""
    if name in ("conv", "resnet18"):
        model, (images, labels) = build_conv() if name == "conv" else build_resnet18()
        images, labels = images.to(device), labels.to(device)
        return model.to(device), lambda m: torch.nn.functional.cross_entropy(m(images), labels)
    from transformers import LlamaConfig, LlamaForCausalLM

    hidden, layers, length, batch, vocab = LLAMAS[name]
    config = LlamaConfig(
        hidden_size=hidden,
        intermediate_size=int(hidden * 2.75) // 64 * 64,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64,
        vocab_size=vocab,
        max_position_embeddings=1024,
        use_cache=False,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).to(device)
    model.train()
    tokens = torch.randint(0, vocab, (batch, length)).to(device)
    return model, lambda m: m(input_ids=tokens, labels=tokens).loss


def stepper(model, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


class OldToolSwitch:
    """mindstudio-probe wraps functions for good when it is constructed; without this its own base steps would be slow too."""

    def __init__(self, debugger):
        service = getattr(debugger, "service", None)
        self.register = getattr(service, "api_register", None)

    def off(self):
        if self.register is not None:
            self.register.restore_all_api()

    def on(self):
        if self.register is not None:
            self.register.register_all_api()


def measure(args):
    torch.set_num_threads(1)
    reference, loss_of = build(args.model, args.device)
    synchronize = torch.cuda.synchronize if args.device.startswith("cuda") else lambda: None
    watched = copy.deepcopy(reference)
    base_step, tool_step = stepper(reference, loss_of), stepper(watched, loss_of)

    def timed(fn):
        wall, cpu = time.perf_counter(), time.process_time()
        fn()
        synchronize()
        return time.perf_counter() - wall, time.process_time() - cpu

    for _ in range(3):
        base_step()
    before = [timed(base_step) for _ in range(args.steps)]

    from msprobe.pytorch import PrecisionDebugger

    out = tempfile.mkdtemp(prefix="msprobe_bench_", dir=args.dir)
    config = {
        "task": args.task,
        "dump_path": out,
        "rank": [],
        "step": [],
        "level": args.level,
        args.task: {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": args.summary},
    }
    config_path = os.path.join(out, "config.json")
    with open(config_path, "w") as f:
        json.dump(config, f)
    debugger = PrecisionDebugger(config_path=config_path)
    switch = OldToolSwitch(debugger)
    switch.off()
    idle = [timed(base_step) for _ in range(args.steps)]

    def with_tool():
        switch.on()
        debugger.start(watched)
        tool_step()
        debugger.stop()
        debugger.step()
        switch.off()

    def drop_files():
        # Between the measurements, so that files of many steps neither fill the disk nor stay behind to be written.
        for name in os.listdir(out):
            if args.task == "tensor" and name.startswith("step") and name != last_step(out):
                shutil.rmtree(os.path.join(out, name))
        if args.task == "tensor":
            os.sync()

    with_tool()  # the first step pays for hooking the model and for opening files
    ratios, bases = [], []
    previous = timed(base_step)
    for _ in range(args.steps):
        tool = timed(with_tool)
        following = timed(base_step)
        base = [(p + f) / 2 for p, f in zip(previous, following)]
        ratios.append([t / b for t, b in zip(tool, base)])
        bases.append(base[0])
        previous = following
        drop_files()
    entries, size, linked, seen = 0, 0, 0, set()
    for root, _, files in os.walk(os.path.join(out, last_step(out))):
        for name in files:
            status = os.stat(os.path.join(root, name))
            linked += status.st_size
            size += 0 if status.st_ino in seen else status.st_size
            seen.add(status.st_ino)
            if name == "dump.json":
                with open(os.path.join(root, name)) as f:
                    entries = len(json.load(f)["data"])
    write_speed, durable, durable_sequential = None, None, None
    if args.task == "tensor":
        write_speed = sequential_write(out, size)
        durable, durable_sequential = durable_speeds(out, size, with_tool)
    shutil.rmtree(out, ignore_errors=True)

    median = statistics.median
    return {
        "model": args.model,
        "level": args.level,
        "task": args.task,
        "summary": args.summary,
        "steps": args.steps,
        "base_ms": round(median(bases) * 1e3, 2),
        "wall_ratio": round(median(r[0] for r in ratios), 3),
        "cpu_ratio": round(median(r[1] for r in ratios), 3),
        "idle_ratio": round(median(t[1] for t in idle) / median(t[1] for t in before), 3),
        "entries": entries,
        "bytes_per_step": size,
        "bytes_with_links": linked,
        # What a step takes longer than without the tool, as a speed of writing, and what one large file reaches there.
        "dump_mb_per_s": round(size / 1e6 / max(1e-9, median(r[0] - 1 for r in ratios) * median(bases)), 1),
        "disk_mb_per_s": write_speed,
        "durable_mb_per_s": durable,
        "disk_durable_mb_per_s": durable_sequential,
    }


def last_step(out):
    return max((d for d in os.listdir(out) if d.startswith("step")), key=lambda d: int(d[4:]))


def durable_speeds(out, size, step, rounds=2, steps=20):
    """MB/s of so many steps until all their files are on the medium, computing included, and of one file of as many bytes."""
    dumps, files = [], []
    for _ in range(rounds):
        os.sync()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        os.sync()
        dumps.append(steps * size / 1e6 / (time.perf_counter() - start))
        for name in os.listdir(out):
            if name.startswith("step"):
                shutil.rmtree(os.path.join(out, name))
        files.append(sequential_write(out, steps * size, rounds=1, durable=True))
    return round(statistics.median(dumps), 1), round(statistics.median(files), 1)


def sequential_write(directory, size, rounds=3, durable=False):
    """MB/s of one file of so many bytes, written in pieces of 8 MiB; without `durable` it does not wait for the medium."""
    piece = os.urandom(8 << 20)
    speeds = []
    for _ in range(rounds):
        path = os.path.join(directory, "sequential")
        start = time.perf_counter()
        with open(path, "wb", buffering=0) as f:
            for _ in range(max(1, size // len(piece))):
                f.write(piece)
            if durable:
                os.fsync(f.fileno())
        speeds.append(max(1, size // len(piece)) * len(piece) / 1e6 / (time.perf_counter() - start))
        os.remove(path)
        os.sync()
    return round(statistics.median(speeds), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--level", choices=("L0", "L1", "mix"), default="mix")
    parser.add_argument("--task", choices=("statistics", "tensor"), default="statistics")
    parser.add_argument("--summary", choices=("statistics", "md5", "xor"), default="statistics")
    parser.add_argument("--device", default="cpu", help="of torch; a CUDA device is waited for after each step")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument(
        "--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None, help="where dumps are written"
    )
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()

"""Trains models under one tool and writes what the training computed: `capture_one.py TOOL OUT PLAN`.

TOOL is ours or theirs (the earlier tool, in its own interpreter). PLAN is JSON: {model: {name: configuration}}, where null
as configuration means without any tool. Each configuration of each model runs in a child of this process, forked after the
imports, which take longer than the training; so all of them start in the same state. Results, by rank where there are
several: OUT/MODEL/TOOL/NAME/{dump,bits.json,log.txt}; OUT/MODEL/TOOL/done when the model is through.
"""

import contextlib
import gc
import hashlib
import json
import os
import random
import sys
from concurrent.futures import Future
from pathlib import Path

import catalogue
import models
import numpy
import torch
import torch._dynamo  # by the first step of an optimizer: for ten times as long as a training takes
from forked import fork


def digest(tensors):
    found = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            found.update(b"none")
            continue
        tensor = tensor.detach()
        tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        found.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def rng_state():
    kind, keys, *rest = numpy.random.get_state()
    others = repr((random.getstate(), kind, keys.tolist(), rest))
    return [digest([torch.get_rng_state()]), hashlib.sha256(others.encode()).hexdigest()]


def seed():
    # Memory that was not written yet has to be the same under both tools, too.
    torch.use_deterministic_algorithms(True, warn_only=True)
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)


def train(model_name, rank, world, config_path):
    debugger = None
    if config_path:
        from msprobe.pytorch import PrecisionDebugger

        # Before the model, as the earlier tool sees no function that a model holds since it was made.
        debugger = PrecisionDebugger(config_path=config_path)
    seed()
    training = catalogue.BUILDERS[model_name](rank, world)
    parts = training.model if isinstance(training.model, list) else [training.model]
    seed()

    @contextlib.contextmanager
    def capture():
        if debugger:
            debugger.start(model=training.model)
        yield
        if debugger:
            debugger.stop()

    steps = []
    for _ in range(catalogue.steps(model_name)):
        for optimizer in training.optimizers:
            optimizer.zero_grad()
        losses = training.losses(capture)
        if debugger:
            debugger.step()
        parameters = [parameter for part in parts for parameter in part.parameters()]
        steps.append(
            {
                "losses": [loss.item().hex() for loss in losses],
                "gradients": digest(parameter.grad for parameter in parameters),
                "parameters": digest(parameters),
                "buffers": digest(buffer for part in parts for buffer in part.buffers()),
                "random": rng_state(),
            }
        )
    return steps


def run_all(model, configurations, out):
    """In a child, as what one model imports stays out of the other models' processes."""
    world = models.WORLD.get(model, 1)
    if world == 1:
        catalogue.BUILDERS[model](0, 1)  # for its imports
    else:  # cannot be made without the others; DTensor imports these when it is first used
        import torch._decomp.decompositions_for_rng
        import torch.distributed.fsdp
        import torch.distributed.tensor.parallel  # noqa: F401
    for name, config in sorted(configurations.items(), key=lambda item: item[1] is not None):
        if config is not None:
            import msprobe.pytorch  # noqa: F401 - for all that follow, after the run without a tool
        gc.freeze()  # children share these pages as long as nobody counts in them
        directory = out / name
        directory.mkdir(parents=True)
        suffixes = [f".{rank}" if world > 1 else "" for rank in range(world)]
        logs = [directory / f"log{suffix}.txt" for suffix in suffixes]
        for child in [fork(run_rank, model, directory, config, rank, world, log=log) for rank, log in enumerate(logs)]:
            os.waitpid(child, 0)


def run_rank(model, out, config, rank, world):
    """In a child: one configuration, one rank."""
    suffix = f".{rank}" if world > 1 else ""
    path = None
    if config is not None:
        path = str(out / f"config{suffix}.json")
        Path(path).write_text(json.dumps({**config, "dump_path": str(out / "dump")}))
    if world > 1:
        store = torch.distributed.FileStore(str(out / "store"), world)
        torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    steps = train(model, rank, world, path)
    if world > 1:
        torch.distributed.destroy_process_group()
    (out / f"bits{suffix}.json").write_text(json.dumps(steps))


class AtOnce:
    """In the place of a thread pool."""

    def __init__(self, *args, **kwargs):
        pass

    def submit(self, call, *args):
        done = Future()
        done.set_result(call(*args))
        return done

    def shutdown(self, *args, **kwargs):
        pass


def prepare_theirs():
    """The earlier tool computes checksums of live tensors in a thread that may come late: here they come at once."""
    import msprobe.pytorch  # noqa: F401
    from msprobe.core.dump.data_dump.data_processor import pytorch_processor

    pytorch_processor.ThreadPoolExecutor = AtOnce


def main():
    tool, out, plan = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    import transformers  # noqa: F401 - once for all children

    if tool == "theirs":
        prepare_theirs()
    parent = os.getppid()
    for model, configurations in plan.items():
        if os.getppid() != parent:
            return  # the tests were killed
        results = out / model / tool
        results.mkdir(parents=True)
        os.waitpid(fork(run_all, model, configurations, results), 0)
        (results / "done").touch()


if __name__ == "__main__":
    main()

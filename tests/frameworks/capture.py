"""Records training steps of networks of one framework, all in this interpreter.

usage: capture.py pytorch|mindspore JOBS_JSON

A job is {"network", "level", "task", "out", "source"}: `out` becomes the directory of the step, `source` is the file of the
network, which may be an edited copy. A process has one debugger: each job is a step of it under another configuration.
"""

import gc
import importlib.util
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from data import batch, weight

HERE = Path(__file__).resolve().parent


def load(source):
    spec = importlib.util.spec_from_file_location("network", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weight_of(module, name, shape):
    """The weight that is called `name` in this framework: PyTorch's, joined or transposed where this network has it so."""
    transposed = name.endswith(getattr(module, "TRANSPOSED", ()) or ("?",))
    shape = tuple(shape)[::-1] if transposed else tuple(shape)
    rows = {name: shape[0]}
    for joined, parts in getattr(module, "JOINED", {}).items():
        if joined in name:
            rows = {name.replace(joined, part): n for part, n in parts.items()}
    values = []
    for part, n in rows.items():
        for own, common in getattr(module, "RENAMED", ()):
            part = part.replace(own, common)
        values.append(weight(part, (n, *shape[1:])))
    value = np.concatenate(values)
    return np.ascontiguousarray(value.T) if transposed else value


class PyTorch:
    def __init__(self):
        import torch
        from msprobe.pytorch import PrecisionDebugger

        torch.set_num_threads(1)
        self.torch, self.debugger = torch, PrecisionDebugger

    def network(self, module):
        model = module.make()
        with self.torch.no_grad():
            for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
                if isinstance(tensor, self.torch.nn.Parameter) or "running" in name:
                    tensor.copy_(self.torch.from_numpy(weight_of(module, name, tensor.shape)))
        return model.train()

    def step(self, module, model, arrays):
        module.loss(model, *map(self.torch.from_numpy, arrays)).backward()


class MindSpore:
    def __init__(self):
        os.environ["GLOG_v"] = "4"
        import mindspore
        from msprobe.mindspore import PrecisionDebugger

        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        self.mindspore, self.debugger = mindspore, PrecisionDebugger

    def network(self, module):
        model = module.make()
        for name, parameter in model.parameters_and_names():
            parameter.set_data(self.mindspore.Tensor(weight_of(module, name, parameter.shape)))
        return model.set_train()

    def step(self, module, model, arrays):
        inputs = [
            self.mindspore.Tensor(array.astype(np.int32) if array.dtype == np.int64 else array) for array in arrays
        ]
        gradients = self.mindspore.value_and_grad(
            lambda *batch: module.loss(model, *batch), None, model.trainable_params()
        )
        gradients(*inputs)


def main(framework, jobs):
    jobs = json.loads(Path(jobs).read_text())
    sys.path.insert(0, str(HERE / f"{framework}_networks"))
    side = PyTorch() if framework == "pytorch" else MindSpore()
    gc.freeze()  # what was imported stays
    debugger = None
    for number, job in enumerate(jobs):
        out, dump = Path(job["out"]), Path(job["out"] + "_dump")
        dump.mkdir(parents=True)
        module = load(job["source"])
        model = side.network(module)
        if debugger is None:
            debugger = side.debugger(task=job["task"], level=job["level"], dump_path=str(dump))
        config = debugger.config
        config.task, config.level, config.dump_path = job["task"], job["level"], str(dump)
        debugger.start(model)
        side.step(module, model, batch(job["network"]))
        debugger.stop()
        debugger.step()
        (dump / f"step{number}").rename(out)
        dump.rmdir()


if __name__ == "__main__":
    main(*sys.argv[1:])

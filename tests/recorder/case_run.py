"""`case_run.py CASE OUT WAY...` runs a case of the zoo in a process for each way (bare, watch, split, tool) and rank."""

import datetime
import hashlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "zoo"), str(HERE.parent / "python")]

from forked import fork  # noqa: E402 - beside the other helpers of tests


class Bits:
    """A hash of everything that a training computes."""

    def __init__(self):
        self._hash = hashlib.sha256()

    def add(self, value):
        import torch
        from figures import _parts, raw_bytes

        if isinstance(value, torch.Tensor):
            with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
                plain, _ = _parts(value)
                if plain is not None and plain.untyped_storage().nbytes() > 0:
                    plain = plain.detach()
                    self._hash.update(f"{plain.dtype}{list(plain.shape)}".encode() + raw_bytes(plain))
                else:
                    self._hash.update(b"nothing")
        elif isinstance(value, dict):
            for key in value:
                self._hash.update(str(key).encode())
                self.add(value[key])
        elif isinstance(value, (list, tuple)):
            for member in value:
                self.add(member)
        else:
            self._hash.update(repr(value).encode())

    def text(self):
        return self._hash.hexdigest()


def train(case, way, out, rank):
    """The steps of a case; returns what they computed and what was recorded."""
    import torch
    import truth

    torch.manual_seed(0)
    ranks = getattr(case, "RANKS", 1)
    if ranks > 1:
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{out}/store_{way}",
            rank=rank,
            world_size=ranks,
            timeout=datetime.timedelta(seconds=120),
        )
    begin, end, recorder = _means(case, way, out)
    state = case.build()
    models = state if isinstance(state, (torch.nn.Module, list, tuple)) else state.model
    bits = Bits()
    for i in range(getattr(case, "STEPS", 2)):
        truth.step = i
        begin(models)
        result = case.step(state, i)
        end()
        bits.add(result)
        for model in models if isinstance(models, (list, tuple)) else [models] if models is not None else []:
            for parameter in model.parameters():
                bits.add([parameter, parameter.grad])
            bits.add(list(model.buffers()))
        bits.add(torch.get_rng_state())
    steps = []
    if recorder:
        for i, entries in enumerate(recorder.steps):
            steps.append({"entries": entries, "told": truth.told.get(i, []), "limits": truth.limits.get(i, [])})
    if ranks > 1:
        torch.distributed.barrier()
    return {"bits": bits.text(), "steps": steps}


def _means(case, way, out):
    if way == "tool":
        from msprobe.pytorch import PrecisionDebugger

        task = getattr(case, "TASK", "statistics")
        config = {
            "task": task,
            "level": os.environ.get("ZOO_LEVEL", getattr(case, "LEVEL", "mix")),
            "dump_path": str(out / "dump"),
            "risk_level": "ALL",
            task: {"summary_mode": getattr(case, "SUMMARY", "statistics")},
        }
        config.update(getattr(case, "CONFIG", {}))
        path = out / f"config_{os.getpid()}.json"
        path.write_text(json.dumps(config))
        debugger = PrecisionDebugger(config_path=str(path))

        def end():
            debugger.stop()
            debugger.step()

        return (lambda models: debugger.start(model=models)), end, None
    if way == "bare":
        return (lambda models: None), (lambda: None), None
    import truth
    from recorder import Recorder

    recorder = Recorder(way)
    recorder.patch()
    truth.recorder = recorder
    return recorder.begin, recorder.end, recorder


def one(name, out, way, rank):
    """Runs in a process of its own."""
    result = out / f"{way}{rank}.json"
    try:
        case = importlib.import_module(name)
        done = train(case, way, out, rank)
    except BaseException:  # noqa: BLE001 - whatever ends the training is the answer
        done = {"error": traceback.format_exc()}
    result.write_text(json.dumps(done))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what libraries do at the end is no part of the training


def main():
    name, out, *ways = sys.argv[1:]
    out = Path(out)
    source = (HERE / "zoo" / f"{name}.py").read_text()
    ranks = next((int(line.split("=")[1]) for line in source.splitlines() if line.startswith("RANKS =")), 1)
    for way in ways:
        children = []
        for rank in range(ranks):
            children.append((rank, fork(one, name, out, way, rank, log=out / f"{way}{rank}.log")))
        for rank, child in children:
            _, status = os.waitpid(child, 0)
            if status and not (out / f"{way}{rank}.json").exists():
                (out / f"{way}{rank}.json").write_text(json.dumps({"error": f"exit status {status}"}))


if __name__ == "__main__":
    main()

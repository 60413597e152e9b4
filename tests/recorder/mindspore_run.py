"""`mindspore_run.py CASE OUT WAY...` runs a case of zoo_mindspore in a process for each way (bare, watch, split, tool)."""

import hashlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "zoo_mindspore"), str(HERE.parent / "python")]

from forked import fork  # noqa: E402 - beside the other helpers of tests


def add(found, value):
    """Adds the bits of tensors in nested lists to a hash."""
    import mindspore as ms
    import numpy as np

    if isinstance(value, ms.Tensor):
        found.update(str(value.dtype).encode() + np.array(value.asnumpy(), copy=True).tobytes())
    elif isinstance(value, (list, tuple)):
        for member in value:
            add(found, member)
    else:
        found.update(repr(value).encode())


def train(case, way, out):
    import mindspore as ms
    import numpy as np

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    np.random.seed(1)
    begin, end, recorder = _means(case, way, out)
    net, step = case.build()
    fixed = np.random.default_rng(7)
    for parameter in net.get_parameters():
        if parameter.requires_grad:
            values = fixed.standard_normal(parameter.shape).astype(np.float32) * 0.3
            parameter.set_data(ms.Tensor(values).astype(parameter.dtype))
    bits = hashlib.sha256()
    for i in range(getattr(case, "STEPS", 2)):
        begin(net)
        result = step(i)
        end()
        add(bits, [result, list(net.get_parameters())])
    steps = [{"entries": e, "told": [], "limits": []} for e in recorder.steps] if recorder else []
    return {"bits": bits.hexdigest(), "steps": steps}


def _means(case, way, out):
    if way == "tool":
        from msprobe.mindspore import PrecisionDebugger

        config = {"task": "statistics", "level": getattr(case, "LEVEL", "mix"), "dump_path": str(out / "dump")}
        config["statistics"] = {"summary_mode": getattr(case, "SUMMARY", "statistics")}
        path = out / "config.json"
        path.write_text(json.dumps(config))
        debugger = PrecisionDebugger(config_path=str(path))

        def end():
            debugger.stop()
            debugger.step()

        return debugger.start, end, None
    if way == "bare":
        return (lambda net: None), (lambda: None), None
    from mindspore_recorder import Recorder

    recorder = Recorder(way)
    return recorder.begin, recorder.end, recorder


def one(name, out, way):
    try:
        done = train(importlib.import_module(name), way, out)
    except BaseException:  # noqa: BLE001 - whatever ends the training is the answer
        done = {"error": traceback.format_exc()}
    (out / f"{way}0.json").write_text(json.dumps(done))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main():
    name, out, *ways = sys.argv[1:]
    out = Path(out)
    for way in ways:
        _, status = os.waitpid(fork(one, name, out, way, log=out / f"{way}0.log"), 0)
        if status and not (out / f"{way}0.json").exists():
            (out / f"{way}0.json").write_text(json.dumps({"error": f"exit status {status}"}))


if __name__ == "__main__":
    main()

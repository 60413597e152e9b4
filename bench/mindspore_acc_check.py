"""Processor time of acc_check for a dump of MindSpore with 1,000 calls, beside that of mindstudio-probe.

usage: python bench/mindspore_acc_check.py DIRECTORY      with .venv-ms, .venv-ms-old, and torch of .venv for the earlier tool
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
DUMP = """
import json, sys
import mindspore as ms, numpy as np
from mindspore import Tensor, mint, nn
from msprobe.mindspore import PrecisionDebugger

section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
settings = {"task": "tensor", "dump_path": sys.argv[1], "rank": [], "step": [], "level": "L1", "tensor": section}
open(sys.argv[2], "w").write(json.dumps(settings))
debugger = PrecisionDebugger(config_path=sys.argv[2])
random = np.random.default_rng(0)
x, w = (Tensor(random.standard_normal(shape).astype("float32")) for shape in ((16, 64), (64, 64)))


class Chain(nn.Cell):
    def construct(self, x, w):
        y = x
        for _ in range(200):
            y = mint.nn.functional.softmax(mint.nn.functional.linear(y, w), dim=-1)
            y = mint.tanh(mint.add(mint.mul(y, x), x))
        return y.sum()


chain = Chain()
debugger.start(chain)
ms.value_and_grad(chain, (0, 1))(x, w)
debugger.stop()
debugger.step()
"""
EARLIER = """
import sys
sys.path.append(sys.argv.pop(1))
sys.argv[0] = "msprobe"
import torch
from msprobe.msprobe import main
main()
"""


def seconds(command, **env):
    """Processor time of a command and of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **env}, stdout=-3, stderr=-3)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    root = Path(sys.argv[1]).resolve()
    root.mkdir(parents=True)
    python = REPO / ".venv-ms" / "bin" / "python"
    subprocess.run([python, "-c", DUMP, root / "dump", root / "config.json"], check=True, stdout=-3, stderr=-3)
    (dump,) = (root / "dump").rglob("dump.json")
    command = os.environ.get("MSPROBE_BIN", REPO / ".venv" / "bin" / "msprobe")
    ours = seconds([command, "acc_check", "-api_info", dump, "-o", root / "ours"], MSPROBE_PYTHON=str(python))
    (torch,) = (REPO / ".venv" / "lib").glob("python3*/site-packages")
    (root / "earlier").mkdir()
    old = [REPO / ".venv-ms-old" / "bin" / "python", "-c", EARLIER, torch, "acc_check", "-api_info", dump]
    earlier = seconds([*old, "-o", root / "earlier"])
    print(f"acc_check, MindSpore, 1,001 calls forward and backward: {ours:.1f} s of processor time")
    print(f"mindstudio-probe: {earlier:.1f} s, {earlier / ours:.1f} times as much")


if __name__ == "__main__":
    main()

"""MSAdapter, a torch whose tensors are MindSpore's: its capture is refused with one clear line."""

import os
import subprocess

# Stands for MSAdapter, which no package index has.
TORCH = "import mindspore\nTensor = mindspore.Tensor\n"


def test_capture_is_refused(tmp_path, mindspore_python):
    (tmp_path / "torch.py").write_text(TORCH)
    command = [mindspore_python, "-c", "from msprobe.pytorch import PrecisionDebugger"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "GLOG_v": "4"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: the torch that ") and "MSAdapter" in last, done.stderr

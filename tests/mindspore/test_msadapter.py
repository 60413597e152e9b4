"""MSAdapter, a torch whose tensors are MindSpore's: its capture is refused with one clear line."""

import csv
import json
import os
import subprocess

from graph_cases import find_command

# Stands for MSAdapter, which no package index has.
TORCH = "import mindspore\nTensor = mindspore.Tensor\n"


def test_capture_is_refused(tmp_path, mindspore_python):
    (tmp_path / "torch.py").write_text(TORCH)
    command = [mindspore_python, "-c", "from msprobe.pytorch import PrecisionDebugger"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "GLOG_v": "4"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: the torch that ") and "MSAdapter" in last, done.stderr


def write(rank, framework, kind, dtype, norm):
    rank.mkdir(parents=True)
    names = ["Module.fc.Linear.forward.0", "Functional.relu.0.forward"]
    tensor = {"type": kind, "dtype": dtype, "shape": [2, 3], "Max": 1.0, "Min": -1.0, "Mean": 0.25, "Norm": 2.0}
    data = {name: {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]} for name in names}
    data[names[1]]["output"] = [{**tensor, "Norm": norm}]
    dump = {"task": "statistics", "level": "mix", "framework": framework, "dump_data_dir": None, "data": data}
    (rank / "dump.json").write_text(json.dumps(dump))
    (rank / "construct.json").write_text(json.dumps(dict.fromkeys(names)))
    (rank / "stack.json").write_text(json.dumps({"0": [names, ["File train.py, line 1, in f, \n x"]]}))


def test_dumps_are_compared_with_those_of_pytorch(tmp_path):
    write(tmp_path / "adapter" / "rank0", "mindtorch", "mindspore.Tensor", "Float32", 3.0)
    write(tmp_path / "torch" / "rank0", "pytorch", "torch.Tensor", "torch.float32", 2.0)
    command = [
        find_command(),
        "compare",
        "-tp",
        tmp_path / "adapter",
        "-gp",
        tmp_path / "torch",
        "-o",
        tmp_path / "out",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = (tmp_path / "out").glob("*.csv")
    with table.open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert {row["Bench Name"] for row in rows}.isdisjoint({"", "N/A"}) and len(rows) == 4
    different = [row["NPU Name"] for row in rows if row["NPU l2norm"] != row["Bench l2norm"]]
    assert different == ["Functional.relu.0.forward.output.0"], [list(rows[0]), different]

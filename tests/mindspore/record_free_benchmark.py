"""Writes free_benchmark_rows.json: what mindstudio-probe 8.1.1 finds in free_benchmark_scenario.py.

usage: PYTHONPATH=DIRECTORY_OF_MINDSTUDIO_PROBE_8.1.1 record_free_benchmark.py PYTHON_WITH_MINDSPORE
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HALF = ("improve_precision", "add_noise", "bit_noise")
SECTIONS = {
    "change_value": {"pert_mode": "change_value"},
    "no_change": {"pert_mode": "no_change"},
    **{f"{mode}_half": {"pert_mode": mode, "dtype": "float16"} for mode in HALF},
    "list": {"pert_mode": "change_value", "list": ["mindspore.ops.tanh", "mindspore.mint.exp"], "if_preheat": True},
    "backward": {"pert_mode": "change_value", "fuzz_stage": "backward"},
    "fix_half": {"pert_mode": "improve_precision", "handler_type": "fix", "dtype": "float16"},
}
LOSSES = "import sys, numpy; print(numpy.load(sys.argv[1])['losses'].tolist())"


def main():
    recorded = {}
    for name, section in SECTIONS.items():
        with tempfile.TemporaryDirectory() as root:
            environment = {**os.environ, "GLOG_v": "4", "OMP_NUM_THREADS": "1"}
            command = [sys.argv[1], HERE / "free_benchmark_scenario.py", root, json.dumps(section)]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            path = Path(root) / "free_benchmark.csv"
            rows = list(csv.DictReader(path.open())) if path.exists() else []
            command = [sys.argv[1], "-c", LOSSES, Path(root) / "trained.npz"]
            losses = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        recorded[name] = {"section": section, "rows": rows, "losses": losses}
    (HERE / "free_benchmark_rows.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()

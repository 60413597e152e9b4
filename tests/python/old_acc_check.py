"""acc_check of mindstudio-probe on the CPU, in the place of CUDA, which it asks for; run_ut of releases 8.x.

usage: old_acc_check.py RULES DUMP DIRECTORY      in its own Python; RULES is a file of output handlers, or "-"
"""

import importlib
import importlib.util
import sys
from pathlib import Path

import torch

PLACE = "msprobe.pytorch.api_accuracy_checker"


def run():
    rules, dump, out = sys.argv[1:]
    eight = importlib.util.find_spec(f"{PLACE}.run_ut") is not None
    command = "run_ut" if eight else "acc_check"
    module, utils = (importlib.import_module(f"{PLACE}.{command}.{name}") for name in (command, f"{command}_utils"))
    module.current_device = utils.current_device = "cpu"
    torch.cuda.set_device = lambda device: None
    if rules != "-":
        processor = importlib.import_module("msprobe.core.common.output_postprocess.processor")
        processor._DEFAULT_YAML_PATH = rules
        processor._DEFAULT_TRUSTED_HANDLER_DIRS = str(Path(rules).parent)
    sys.argv = ["msprobe", *(["-f", "pytorch"] if eight else []), command, "-api_info", dump, "-o", out]
    importlib.import_module("msprobe.msprobe").main()


if __name__ == "__main__":
    run()

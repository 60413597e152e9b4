"""acc_check of mindstudio-probe on the CPU, in the place of CUDA, which it asks for.

usage: old_acc_check.py RULES DUMP DIRECTORY      in its own Python; RULES is a file of output handlers, or "-"
"""

import sys
from pathlib import Path

import torch
from msprobe.core.common.output_postprocess import processor
from msprobe.msprobe import main
from msprobe.pytorch.api_accuracy_checker.acc_check import acc_check, acc_check_utils


def run():
    rules, dump, out = sys.argv[1:]
    acc_check.current_device = acc_check_utils.current_device = "cpu"
    torch.cuda.set_device = lambda device: None
    if rules != "-":
        processor._DEFAULT_YAML_PATH = rules
        processor._DEFAULT_TRUSTED_HANDLER_DIRS = str(Path(rules).parent)
    sys.argv = ["msprobe", "acc_check", "-api_info", dump, "-o", out]
    main()


if __name__ == "__main__":
    run()

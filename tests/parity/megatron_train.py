"""Trains the GPT of tests/megatron over gloo: `torchrun --nproc_per_node N megatron_train.py --layout tp=2,dp=2 [--fault NAME]`.

Run it with an interpreter that has megatron-core.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "megatron"))
import stand_in

stand_in.pretend_cuda()

import gpt  # noqa: E402 - it imports megatron
import megatron_faults  # noqa: E402
import torch  # noqa: E402
import train  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layout", type=train.layout_of, default=gpt.Layout())
    parser.add_argument("--fault", default="")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    assert options.layout.world == world, f"the layout has {options.layout.world} ranks"
    store = os.path.join(
        tempfile.gettempdir(), f"store_{os.environ['TORCHELASTIC_RUN_ID']}_{os.environ['MASTER_PORT']}"
    )
    gpt.start_process(options.layout, rank, store)
    fault = megatron_faults.FAULTS[options.fault] if options.fault and world > 1 else None
    run = gpt.build(options.layout, fault and fault.before)
    if fault and fault.after:
        fault.after(run)
    for step in range(options.steps):
        train.train_step(run, step)
        if fault and fault.step:
            fault.step(run)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

"""The model of train.py under DeepSpeed: `torchrun --nproc_per_node N deepspeed_train.py --stage 1 [--fault NAME]`."""

import argparse

import deepspeed
import deepspeed_faults
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional
from train import Net, batches, plain


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", type=int, default=1)
    parser.add_argument("--fault", default="")
    options = parser.parse_args()
    options.iterator = False
    torch.set_num_threads(1)
    deepspeed.init_distributed("gloo", verbose=False)
    mesh = init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    net = Net(plain)
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_clipping": 0.25,
        "zero_optimization": {"stage": options.stage, "stage3_param_persistence_threshold": 0},
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    engine, *_ = deepspeed.initialize(model=net, optimizer=optimizer, config=config)
    if options.fault and dist.get_world_size() > 1:
        deepspeed_faults.FAULTS[options.fault](engine)
    for ids, _ in batches(options, mesh):
        logits = engine(ids[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        engine.backward(loss)
        engine.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Communications of two ranks, recorded with task tensor.

usage: communication_scenario.py DIRECTORY      (writes DIRECTORY/dump)
"""

import json
import os
import socket
import sys
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD = 2


def run(rank, port, root):
    warnings.simplefilter("ignore")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    from msprobe.pytorch import PrecisionDebugger

    config = {"task": "tensor", "dump_path": f"{root}/dump", "level": "L1", "rank": [], "step": []}
    path = f"{root}/config{rank}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    debugger = PrecisionDebugger(path)
    generator = torch.Generator().manual_seed(rank)
    group = dist.new_group([1, 0])

    def given(*shape):
        return torch.randn(*shape, generator=generator)

    debugger.start()
    x = given(40, 7)
    dist.all_reduce(x)
    dist.all_reduce(given(50).bfloat16(), op=dist.ReduceOp.MAX, group=group)
    dist.all_reduce(tensor=given(50).half(), group=group)
    dist.broadcast(given(4), src=1)
    dist.all_gather([torch.zeros(3) for _ in range(WORLD)], given(3))
    dist.all_gather_into_tensor(torch.zeros(3 * WORLD), given(3))
    dist.reduce_scatter(torch.zeros(2), [given(2) for _ in range(WORLD)])
    dist.reduce_scatter_tensor(torch.zeros(2), given(2 * WORLD))
    work = dist.all_to_all_single(torch.zeros(4), given(4), async_op=True)
    work.wait()
    dist.all_to_all_single(torch.zeros(3), given(2 + rank), [1, 2], [1, 1 + rank]) if rank == 1 else (
        dist.all_to_all_single(torch.zeros(2), given(2), [1, 1], [1, 1])
    )
    dist.gather(given(2), [torch.zeros(2) for _ in range(WORLD)] if rank == 0 else None)
    dist.scatter(torch.zeros(2), [given(2) for _ in range(WORLD)] if rank == 0 else None, src=0)
    dist.reduce(given(3), dst=0)
    work = dist.all_reduce(given(3), async_op=True)
    work.wait()
    dist.all_reduce(torch.arange(3) + rank)
    dist.all_reduce(torch.complex(given(60), given(60)))
    dist.all_reduce(given(1000).bfloat16())
    dist.all_reduce(given(3).abs() + 1, op=dist.ReduceOp.PRODUCT)
    if rank == 0:
        dist.send(given(3), 1)
    else:
        dist.recv(torch.zeros(3), 0)
    dist.barrier()
    torch.relu(x)
    debugger.stop()
    debugger.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    os.makedirs(sys.argv[1], exist_ok=True)
    mp.spawn(run, (number, sys.argv[1]), nprocs=WORLD)

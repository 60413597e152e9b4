"""Calls every communication of torch that is recorded, as step 0 with NaN in what the calls fill, as step 1 with sevens.

`collectives_scenario.py DIRECTORY`; see overflow_runs.py. The functions and the names of their arguments are torch's.
"""

import inspect
import sys

import overflow_runs
import torch
import torch.distributed as dist

N = 6
FILLED_LISTS = ("tensor_list", "gather_list", "output_tensor_list")
GIVEN_LISTS = ("input_list", "input_tensor_list", "scatter_list")


def given(rank, count=N):
    return torch.arange(count, dtype=torch.float32) + rank + 1


def arguments_of(function, rank, fill, sizes):
    """`sizes`: of what is filled and of what is given, where a call has one of each."""
    name, out = function.__name__, {}
    for key in inspect.signature(function).parameters:
        if key in FILLED_LISTS:
            out[key] = [torch.full((N,), fill) for _ in range(2)]
        elif key in GIVEN_LISTS:
            out[key] = [given(rank) for _ in range(2)]
        elif key.startswith("output"):
            if not key.endswith("sizes"):
                out[key] = torch.full((sizes[0],), fill)
        elif key.startswith("input"):
            if not key.endswith("sizes"):
                out[key] = given(rank, sizes[1])
        elif key == "tensor":
            filled = "recv" in name or name == "scatter" or (name == "broadcast" and rank == 1)
            out[key] = torch.full((N,), fill) if filled else given(rank)
        elif key in ("src", "dst"):
            out[key] = 1 - rank if "send" in name or "recv" in name else 0
    for root_only in ("gather_list", "scatter_list"):
        if root_only in out and rank != 0:
            del out[root_only]
    return out


def call(function, rank, fill):
    name = function.__name__
    if name == "batch_isend_irecv":
        to, buffer = 1 - rank, torch.full((N,), fill)
        return function([dist.P2POp(dist.isend, given(rank), to), dist.P2POp(dist.irecv, buffer, to)])
    if ("send" in name and rank == 1) or ("recv" in name and rank == 0):
        return None
    gathers = "gather" in name
    sizes = (2 * N, N) if gathers else (N, 2 * N) if "scatter" in name else (N, N)
    return function(**arguments_of(function, rank, fill, sizes))


def functions():
    """All that are recorded, sends in front of their receives."""
    from msprobe.pytorch.apis import hooked_apis

    found = [getattr(api.owner, api.attr) for api in hooked_apis(torch) if api.prefix == "Distributed"]
    return [f for f in found if f.__name__ != "batch_isend_irecv"] + [dist.batch_isend_irecv]


def every_call(fill):
    def run(rank, world, start):
        found = sorted(functions(), key=lambda f: ("recv" in f.__name__, f.__name__))
        start(None)
        torch.relu(given(rank))
        for one, other in (("send", "recv"), ("isend", "irecv")):  # a rank waits for the other
            for name in (one, other):
                done = call(getattr(dist, name), rank, fill)
                if hasattr(done, "wait"):
                    done.wait()
        for function in found:
            if function.__name__ not in ("send", "recv", "isend", "irecv"):
                works = call(function, rank, fill)
                for work in works if isinstance(works, list) else []:
                    work.wait()

    return run


if __name__ == "__main__":
    overflow_runs.RUNS.update(nan=every_call(float("nan")), sevens=every_call(7.0))
    sys.argv[1:1] = ["2"]
    sys.argv[3:] = ["nan", "sevens"]
    overflow_runs.main()

"""Runs a small training under the laws of the monitor and says which broke: shared by the tests and by publish_laws.py."""

import glob
import json
import os
import socket
import sys
import tempfile
import traceback

STEPS = 16


class Run:
    """What a case gets: TrainerMon with all laws, and data."""

    def __init__(self, directory, seed=0):
        import torch

        self.directory, self.torch = directory, torch
        os.environ["MONITOR_OUTPUT_DIR"] = directory
        torch.manual_seed(seed)
        self.monitors = []

    def watch(self, model, optimizer, micro=1, **laws):
        """A monitor of this training that looks at every step."""
        from msprobe.pytorch import TrainerMon

        path = os.path.join(self.directory, f"config{os.getpid()}_{len(self.monitors)}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"laws": {"first": 100000, **laws}, "format": "api"}, file)
        monitor = TrainerMon(path, params_have_main_grad=False)
        monitor.set_monitor(model, optimizer, grad_acc_steps=micro)
        self.monitors.append(monitor)
        return monitor

    def close(self):
        for monitor in self.monitors:
            monitor.close()


def laws():
    """Names of all laws."""
    from msprobe._monitor.laws import LAWS

    return list(LAWS)


def broken_in(directory):
    """Law -> first sentence, of all ranks; and law -> how often it was looked at."""
    broken, looked = {}, {}
    for path in sorted(glob.glob(os.path.join(directory, "*-rank*-*", "laws.json"))):
        with open(path, encoding="utf-8") as file:
            laws = json.load(file)["laws"]
        for name, law in laws.items():
            if law["looks"]:
                looked[name] = looked.get(name, 0) + law["looks"]
            for entry in law["broken"]:
                broken.setdefault(name, f"step {entry['step']}: {entry['name']}: {entry['text']}")
    return broken, looked


def run_case(case, wrong, directory=None):
    """Runs a case, wrong or right, in this process or, with several ranks, in as many forks.

    Returns:
        (what broke, what was looked at).
    """
    directory = directory or tempfile.mkdtemp(prefix="laws_")
    if case.ranks == 1:
        run = Run(directory)
        case.function(run, wrong)
        run.close()
        return broken_in(directory)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(case.ranks):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _one_rank(case, wrong, directory, rank, port)
                code = 0
            except Exception:  # noqa: BLE001 - a fork must not return into the caller
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    if any(codes):
        raise RuntimeError(f"{case.name}: ranks ended with {codes}")
    return broken_in(directory)


def _one_rank(case, wrong, directory, rank, port):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(case.ranks))
    dist.init_process_group("gloo")
    run = Run(directory, seed=0)
    case.function(run, wrong)
    dist.barrier()
    run.close()
    dist.barrier()
    dist.destroy_process_group()

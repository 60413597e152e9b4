"""What certify --twice is asked about: trainings that do not repeat themselves, and those that do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Twice(NamedTuple):
    """A training of twice_loop.py; `op` are words of which the first op of rank `rank` has one."""

    about: str
    options: str = ""
    op: tuple = ()  # empty: it repeats itself
    step: int = 0  # from 0, of the op
    rank: str = "rank"
    processes: int = 1
    environment: tuple = ()


PLANTED = (
    Twice("dropout without a seed", "--fault dropout", ("dropout",)),
    Twice("numpy's noise on the data without a seed", "--fault numpy", ("linear", "Linear")),
    Twice("python's scale of the data without a seed", "--fault python", ("linear", "Linear", "__mul__")),
    Twice("parts of the model in the order of a set", "--fault set", ("heads", "linear", "Linear")),
    Twice("sums in the order in which threads finish", "--fault threads", ("__add__", "ByThreads", "__iadd__")),
    Twice("a learning rate that depends on the time", "--fault clock", ("lr", "step", "_adamw", "addcdiv", "mul_")),
    Twice("gradients that depend on the number of the process", "--fault process", ("mul_",)),
    Twice("dropout without a seed on one of two ranks", "--fault rank1", ("dropout",), rank="rank1", processes=2),
    Twice("noise of two ranks without a seed", "--fault numpy", ("linear", "Linear"), rank="rank0", processes=2),
)
CLEAN = (
    Twice("everything seeded"),
    Twice("two threads", "--threads 2"),
    Twice("two workers of the loader", "--workers 2"),
    Twice("two ranks", processes=2),
    Twice("two ranks with workers", "--workers 1", processes=2),
)


def certify_twice(case, directory, command, *, python=sys.executable, environment=None):
    """Runs certify --twice on a case; returns the finished process and its certificate."""
    launcher = [str(python)]
    if case.processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.processes)]
    program = [*launcher, str(HERE / "twice_loop.py"), *case.options.split()]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", **dict(case.environment), **(environment or {})}
    settings.pop("PYTHONHASHSEED", None)
    done = subprocess.run(
        [str(command), "certify", "--twice", "--steps", "2", "-o", str(directory), "--", *program],
        env=settings,
        cwd=directory.parent,
        capture_output=True,
        text=True,
        timeout=900,
    )
    path = directory / "certificate.json"
    return done, json.loads(path.read_text()) if path.exists() else {}


def faults_of(case, done, certificate):
    """Lists what the certificate says that is not true of the case; empty if all is right."""
    if not certificate:
        return [done.stderr[-1500:]]
    if not case.op:
        return [] if certificate["repeats"] and done.returncode == 0 else [certificate["verdict"]]
    rank = next((r for r in certificate["ranks"] if r["rank"] == case.rank), None)
    if certificate["repeats"] or done.returncode != 1 or rank is None:
        return [certificate["verdict"]]
    named = any(word in rank["op"] for word in case.op) and rank["step"] == case.step
    return [] if named else [f"{case.rank}: {rank['op']!r} in step {rank['step']}"]

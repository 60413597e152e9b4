"""Planted lost states and clean resumes, how certify runs on them, and whether it says what is true."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Case(NamedTuple):
    """One resume; `lost` are the kinds of state of which one must be named, none where the resume is clean."""

    script: str
    options: str = ""  # of every run
    lose: str = ""  # of the resumed run
    lost: tuple = ()
    example: str = ""  # part of the name that must be told
    ranks: tuple = ("rank",)
    drawn: bool = False  # cannot be equal by the framework's own doing
    by_itself: bool = False

    @property
    def name(self) -> str:
        return " ".join(filter(None, [self.script, self.options, self.lose and f"--lose {self.lose}"]))


BOTH = ("rank0", "rank1")
PLANTED = (
    Case("plain_loop", lose="optimizer", lost=("optimizer",), example="AdamW"),
    Case("plain_loop", lose="rounded", lost=("optimizer",), example="exp_avg"),
    Case("plain_loop", lose="scheduler", lost=("scheduler",)),
    Case("plain_loop", lose="scaler", lost=("scaler",)),
    Case("plain_loop", lose="head", lost=("parameter",), example="4.weight"),
    Case("plain_loop", lose="statistics", lost=("batch_norm",), example="running"),
    Case("plain_loop", lose="average", lost=("tensor",), example="average.shadow"),
    Case("plain_loop", lose="curriculum", lost=("object",), example="curriculum"),
    Case("plain_loop", lose="torch", lost=("random",), example="torch"),
    Case("plain_loop", lose="numpy", lost=("random",), example="numpy"),
    Case("plain_loop", lose="python", lost=("random",), example="python"),
    Case("plain_loop", "--held", lose="slots", lost=("random",), example="Noise.rng"),
    Case("plain_loop", "--held", lose="iterator", lost=("random",), example="scales"),
    Case("plain_loop", lose="position", lost=("data",)),
    Case("plain_loop", "--epoch --global-order --late", lost=("data",)),
    Case("hf_trainer", lose="optimizer", lost=("optimizer",)),
    Case("hf_trainer", lose="random", lost=("random",), example="torch"),
    Case("hf_trainer", lose="position", lost=("data",)),
    Case("hf_trainer", lose="callback", lost=("trainer",), example="Plateau"),
    Case("accelerate_loop", "--forget-average", lost=("module",), example="average"),
    Case("accelerate_loop", lose="position", lost=("data",)),
    Case("ddp_loop", lose="rank", lost=("random",), example="torch", ranks=("rank1",)),
    Case("ddp_loop", lose="epoch", lost=("data",), ranks=BOTH),
)
CLEAN = (
    Case("plain_loop"),
    Case("plain_loop", "--epoch"),
    Case("plain_loop", "--by-itself", by_itself=True),
    Case("plain_loop", "--held"),
    Case("plain_loop", "--epoch --global-order"),
    Case("plain_loop", "--global-order", drawn=True),
    Case("hf_trainer"),
    Case("hf_trainer", "--accumulate 2"),
    Case("accelerate_loop", drawn=True),
    Case("accelerate_loop", "--no-shuffle", drawn=True),
    Case("ddp_loop", ranks=BOTH),
)


def certify(case, directory, command, *, python=sys.executable, environment=None):
    """Runs certify --resume on a case; returns the finished process and its certificate."""
    resume = "" if case.by_itself else "--resume"
    resume += f" --lose {case.lose}" if case.lose else ""
    launcher = [str(python)]
    if case.script == "ddp_loop":
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = [*launcher, str(HERE / f"{case.script}.py"), "--out", "{dir}", *case.options.split()]
    asked = ["--save-at", "3", "--steps", "2", "--resume-args", resume, "-o", str(directory)]
    done = subprocess.run(
        [str(command), "certify", "--resume", *asked, "--", *program],
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        cwd=directory.parent,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    path = directory / "certificate.json"
    return done, json.loads(path.read_text()) if path.exists() else {}


def faults(case, done, certificate):
    """Lists what certify says that is not true of the case; empty if all is right."""
    if not certificate:
        return [done.stderr[-1500:]]
    found = []
    ranks = {rank["rank"]: rank for rank in certificate["ranks"]}
    if not case.lost:
        allowed = ("equal", "restored") if case.drawn else ("equal",)
        if certificate["outcome"] not in allowed or done.returncode != 0:
            found.append(certificate["verdict"])
        return found
    if certificate["outcome"] != "lost" or done.returncode != 1:
        found.append(certificate["verdict"])
    for name in case.ranks:
        named = [state for state in ranks[name]["lost"] if state["kind"] in case.lost]
        if not any(case.example in state["example"] for state in named):
            found.append(f"{name}: {certificate['verdict']}")
    return found

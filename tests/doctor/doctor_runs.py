"""Trains both runs of a case, asks the doctor, runs what it says to run next, and asks again."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from cases import Case
from graph_cases import find_command

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
MOST_RUNS = 3


class Result(NamedTuple):
    outcome: str
    stage: str
    cause: str
    right_stage: bool
    right_cause: bool
    bug: bool
    runs: int  # trainings that the doctor asked for and that were run
    seconds: float
    said: str


def prepare(root, case, framework, edited):
    """The directory of a run before it has run."""
    root.mkdir(parents=True)
    torch = framework == "pytorch"
    shutil.copy(HERE / "runs" / "toy_text.py", root / "toy_text.py")
    for name in ("data.py", "capture.py"):  # weights that both frameworks begin with
        shutil.copy(REPO / "tests" / "frameworks" / name, root / name)
    for name in (
        ("pretrain_tiny.py", "adamw.py") if torch else ("run_mindformer.py", "adamw_mindspore.py", "finetune.yaml")
    ):
        shutil.copy(HERE / "runs" / name, root / name)
    shutil.copy(HERE / "runs" / ("run.sh" if torch else "run_mindspore.sh"), root / "run.sh")
    source = REPO / "tests" / "frameworks" / f"{framework}_networks" / f"{case.network}.py"
    (root / "network.py").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    for name, old, new in (*case.both, *(case.edits if edited else ())):
        path = root / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if old not in text and (name, old, new) in case.both:
            continue  # of the other framework
        assert old in text, f"{case.name}: {old!r} is not in {name}"
        path.write_text(text.replace(old, new), encoding="utf-8")


class Runner:
    def __init__(self, root, mindspore_python=None):
        self.root = Path(root)
        self.kept = self.root / "reference"  # what references gave, by what they are
        self.doctor = find_command()
        self.lock = threading.Lock()
        self.environment = {
            **os.environ,
            "TRAIN_PYTHON": sys.executable,
            "TRAIN_PYTHON_MS": os.path.abspath(mindspore_python or sys.executable),
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        }
        self.environment.pop("PYTHONPATH", None)

    def shell(self, command, cwd):
        done = subprocess.run(
            ["bash", "-c", command], cwd=cwd, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"

    def train(self, run):
        self.shell(f"bash {run.name}/run.sh > {run.name}/train.log 2>&1", run.parent)

    def reference(self, case, run):
        """A fresh copy of what the reference gives: its run repeats itself bit for bit."""
        key = f"{case.network}_{zlib.crc32(repr(case.both).encode()):08x}"
        kept = self.kept / key / "A"
        with self.lock:
            if not kept.exists():
                prepare(kept, case, "pytorch", edited=False)
                self.train(kept)
        shutil.copytree(kept, run)
        return kept

    def follow(self, command, where, kept):
        """Runs a command that the doctor gave; one about the reference only where it did not run before."""
        if not command.endswith("-- bash A/run.sh"):
            self.shell(command, where)
            return
        config = command.split("--config ")[1].split()[0] if "--config " in command else ""
        said = command + ((where / config).read_text(encoding="utf-8") if config else "")
        known = kept.parent / f"run_{zlib.crc32(said.encode()):08x}"
        with self.lock:
            if known.exists():
                shutil.copytree(known, where / "A", dirs_exist_ok=True)
                return
            before = {entry.name for entry in (where / "A").iterdir()}
            self.shell(command, where)
            known.mkdir()
            for entry in (where / "A").iterdir():  # recordings and records: all that the run left
                if entry.name not in before:
                    shutil.copytree(entry, known / entry.name)

    def ask(self, where):
        done = subprocess.run(
            [self.doctor, "doctor", "A", "B", "-o", "doctor", "--json"],
            cwd=where,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1, 5), done.stderr
        return json.loads(done.stdout)

    def diagnose(self, case: Case):
        begin = time.monotonic()
        where = self.root / case.name
        where.mkdir(parents=True)
        kept = self.reference(case, where / "A")
        prepare(where / "B", case, case.framework, edited=True)
        self.train(where / "B")
        runs, said = 0, self.ask(where)
        while said["next"] and not said["exact"] and runs + len(said["next"]["commands"]) <= MOST_RUNS:
            for command in said["next"]["commands"]:
                self.follow(command, where, kept)
                runs += 1
            said = self.ask(where)
        if not case.stage and runs == 0:
            # Curves that agree need no recording; a pair without a fault must stand one, too.
            for side in "AB":
                record = f"msprobe run --config doctor/record.json --dump-path {side}/msprobe_dump --step 0,1"
                self.follow(f"{record} -- bash {side}/run.sh", where, kept)
                runs += 1
            said = self.ask(where)
        return self.judge(case, said, runs, time.monotonic() - begin)

    def judge(self, case, said, runs, seconds):
        stage, cause = said["stage"] or "", said["cause"]
        words = " ".join(
            [
                cause,
                said["cause_text"]["en"],
                *(e["en"] for s in said["stages"] if s["stage"] == stage for e in s["evidence"]),
            ]
        )
        right_stage = stage in case.stage if case.stage else said["outcome"] in ("agree", "rounding")
        right_cause = right_stage and said["exact"] and any(word in words for word in case.cause)
        if not case.stage:
            right_cause = not said["bug"]
        return Result(
            said["outcome"],
            stage,
            cause,
            right_stage,
            right_cause,
            said["bug"],
            runs,
            seconds,
            said["cause_text"]["en"],
        )

#!/usr/bin/env python3
"""Every check of one pair of Python and PyTorch, run by that Python: does the tool work, and are the bits of the training the same?

usage: pair.py DIRECTORY [--reference DIRECTORY] [CHECK ...]

PyTorch is imported once, and each training is a fork of that. Prints a line for each check and writes results.json. The reference
is the directory of another pair: dumps are compared with its dumps. Checks: see CHECKS.
"""

import argparse
import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import training

LIMIT = 300  # seconds of one training
MONITOR = {
    "targets": {},
    "xy_distribution": True,
    "all_xy": True,
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "ops": ["norm", "min", "max", "mean"],
    "step_interval": 1,
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def fork(arguments, log, environment):
    """Begins a training in a fork. Returns its process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        stream = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        os.environ.update(environment)
        signal.alarm(LIMIT)
        training.main([*map(str, arguments)])
        sys.stdout.flush()
        atexit._run_exitfuncs()
        code = 0
    finally:
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


class Pair:
    def __init__(self, place, reference):
        self.place, self.reference = place, reference
        self.bare = {}  # arguments -> what the training computed without the tool
        self.command = Path(sys.executable).parent / "msprobe"

    def train(self, name, *arguments, ranks=1, **environment):
        """({rank: what it computed}, text of the log)"""
        shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **environment}
        logs = [self.place / f"{name}.{rank}.log" for rank in range(ranks)]
        children = [
            fork(arguments, log, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank, log in enumerate(logs)
        ]
        for child in children:
            os.waitpid(child, 0)
        return self._computed("\n".join(log.read_text(errors="replace") for log in logs))

    def _computed(self, text):
        found = re.findall(r"^RESULT (\d+) (.*)$", text, re.MULTILINE)
        return {int(rank): json.loads(steps) for rank, steps in found}, text

    def expect_bits(self, name, added, *base, ranks=1, **environment):
        """Trains with the tool and without; raises where anything differs. Returns the log."""
        if base not in self.bare:
            self.bare[base] = self.train("bare" + "".join(base), *base, ranks=ranks)
            assert len(self.bare[base][0]) == ranks, "the training itself fails: " + last_line(self.bare[base][1])
        computed, text = self.train(name, *base, *added, ranks=ranks, **environment)
        self.judge(computed, self.bare[base][0], text)
        return text

    def judge(self, computed, bare, text):
        assert computed.keys() == bare.keys(), "the training ends: " + last_line(text)
        assert computed == bare, "other bits"
        told = re.findall(r"\[ERROR\].*|what .* was to see is lost.*", text)
        assert not told, told[0]

    def run(self, name, *command, codes=(0,)):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=2 * LIMIT, cwd=self.place)
        text = f"{done.stdout}\n{done.stderr}"
        (self.place / f"{name}.log").write_text(text)
        assert done.returncode in codes, f"exit code {done.returncode}: {last_line(done.stderr)}"
        return done.stdout, text

    def config(self, name, task, level, **section):
        path = self.place / f"{name}.json"
        dump = self.place / name
        shutil.rmtree(dump, ignore_errors=True)
        path.write_text(json.dumps({"task": task, "level": level, "dump_path": str(dump), task: section}))
        return path, dump


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing was said"


def entries(dump, least):
    counts = [len(json.loads(path.read_text())["data"]) for path in sorted(dump.glob("step*/rank*/dump.json"))]
    assert counts and min(counts) >= least, f"entries: {counts}"
    return "/".join(str(count) for count in dict.fromkeys(counts))


def capture(pair, name, task, level, *base, least=60, ranks=1, **section):
    path, dump = pair.config(name, task, level, **section)
    pair.expect_bits(name, ["--config", path], *base, ranks=ranks)
    return "" if task == "structure" else entries(dump, least)


def check_import(pair):
    pair.expect_bits("import", ["--import"])
    return ""


def check_run(pair):
    _, dump = pair.config("run", "statistics", "mix")
    script = Path(training.__file__).resolve()
    command = [pair.command, "run", "--dump-path", dump, "--level", "mix", "--", sys.executable, script]
    out, text = pair.run("run", *command)
    pair.bare[()] = pair.bare.get(()) or pair.train("bare")
    pair.judge(pair._computed(out)[0], pair.bare[()][0], text)
    return entries(dump, 150)


def check_monitor(pair):
    path, output = pair.place / "monitor.json", pair.place / "monitor"
    shutil.rmtree(output, ignore_errors=True)
    path.write_text(json.dumps(MONITOR))
    pair.expect_bits("monitor", ["--monitor", path], "--steps", "5", MONITOR_OUTPUT_DIR=str(output))
    rows = sum(len(table.read_text().splitlines()) - 1 for table in output.rglob("*.csv"))
    assert rows > 500, f"{rows} rows"
    return f"{rows} rows"


def dump_of(place, name):
    found = sorted((place / name).glob("step0/rank*/dump.json"))
    assert found, f"no dump {name} to look at"
    return found[0]


def check_acc_check(pair):
    out = pair.place / "acc_check"
    shutil.rmtree(out, ignore_errors=True)
    dump = dump_of(pair.place, "tensor")
    os.environ["MSPROBE_PYTHON"] = sys.executable
    said, _ = pair.run("acc_check", pair.command, "acc_check", "-api_info", dump, "-o", out, "--json", codes=(0, 1))
    return summary_of(
        json.loads(said[said.index("{") :]), "pass", "warning", "error", "skip", "passed", "failed", "skipped"
    )


def check_compare(pair):
    """With the reference: no op may be called a bug. Releases round otherwise, and draw other masks up to 2.6."""
    if pair.reference is None:
        return "is the reference"
    verdicts = []
    for name in ("mix", "tensor"):
        ours, theirs = (dump_of(place, name) for place in (pair.place, pair.reference))
        out = pair.place / f"compare_{name}"
        shutil.rmtree(out, ignore_errors=True)
        said, _ = pair.run(
            f"compare_{name}", pair.command, "compare", "-tp", ours, "-gp", theirs, "-o", out, codes=(0, 1)
        )
        found = re.search(r"verdict: ([^:\n]*)", said)
        verdicts.append(found[1] if found else last_line(said))
    return "; ".join(dict.fromkeys(verdicts))


def summary_of(said, *names):
    counts = {name: said[name] for name in names if isinstance(said.get(name), int)}
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or json.dumps(said)[:120]


CHECKS = {
    "import": check_import,
    "L0": lambda pair: capture(pair, "L0", "statistics", "L0"),
    "L1": lambda pair: capture(pair, "L1", "statistics", "L1", least=150),
    "mix": lambda pair: capture(pair, "mix", "statistics", "mix", least=200),
    "md5": lambda pair: capture(pair, "md5", "statistics", "mix", least=200, summary_mode="md5"),
    "tensor": lambda pair: capture(pair, "tensor", "tensor", "mix", least=200),
    "structure": lambda pair: capture(pair, "structure", "structure", "mix"),
    "two ranks": lambda pair: capture(pair, "ranks", "statistics", "mix", "--ranks", least=150, ranks=2),
    "compiled": lambda pair: capture(pair, "compiled", "statistics", "mix", "--compiled", least=150),
    "msprobe run": check_run,
    "monitor": check_monitor,
    "acc_check": check_acc_check,
    "compare": check_compare,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("checks", nargs="*", default=[*CHECKS])
    asked = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    warnings.simplefilter("ignore")
    asked.directory.mkdir(parents=True, exist_ok=True)
    pair = Pair(asked.directory.resolve(), asked.reference and asked.reference.resolve())
    results = {"python": sys.version.split()[0], "torch": training.torch.__version__, "checks": {}}
    for name in asked.checks or CHECKS:
        began = time.monotonic()
        try:
            said, passed = CHECKS[name](pair), True
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
            said, passed = f"{type(error).__name__}: {error}".replace("AssertionError: ", ""), False
        results["checks"][name] = {"passed": passed, "said": said}
        print(f"{'ok  ' if passed else 'FAIL'} {name:12} {time.monotonic() - began:5.1f} s  {said}", flush=True)
        (pair.place / "results.json").write_text(json.dumps(results, indent=1))
    return not all(result["passed"] for result in results["checks"].values())


if __name__ == "__main__":
    sys.exit(main())

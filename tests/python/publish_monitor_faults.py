"""What becomes of a monitor and of its files when a run meets a fault: killed, disk full, directory read-only, and so on.

publish_monitor_faults.py DIRECTORY [KILLS] prints a table; each case is a process of its own, forked from one that has PyTorch loaded.
"""

import contextlib
import csv
import glob
import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback

import torch
from monitor_scenario import Model
from msprobe import _core
from msprobe.pytorch import TrainerMon

EVERYTHING = {"xy_distribution": True, "wg_distribution": True, "mv_distribution": True, "param_distribution": True}


class Training:
    """A small model that is trained, with a monitor if a configuration is given."""

    def __init__(self, directory, config=None, model=None):
        torch.set_num_threads(1)
        torch.manual_seed(7)
        self.directory = directory
        self.model = model or Model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.losses = []
        os.makedirs(directory, exist_ok=True)
        os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(directory, "monitor")
        self.monitor = None if config is None else self.watch(config)

    def watch(self, config):
        monitor = TrainerMon(self.configure(config))
        monitor.set_monitor(self.model, self.optimizer)
        return monitor

    def configure(self, config):
        path = os.path.join(os.path.dirname(self.directory), os.path.basename(self.directory) + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"targets": {}, "ops": ["norm", "min", "max", "mean"], **config}, file)
        return path

    def step(self, count=1):
        for _ in range(count):
            tokens = torch.randint(0, 20, (2, 6))
            loss = torch.nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.losses.append(loss.item().hex())


def forked(work):
    """(exit code or -signal, what the process wrote) of `work` in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(write, 1), os.dup2(write, 2)
        code = 1
        try:
            work()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


def rows_are_whole(path):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    return text.endswith("\n") and len({len(row) for row in csv.reader(io.StringIO(text))}) == 1


def whole_files(base, last):
    """What is wrong with the files of the only rank below `base`, which has written steps 0 to `last`, maybe one more."""
    (directory,) = glob.glob(os.path.join(base, "monitor", "*-rank0-*"))
    series = _core.read_series(os.path.join(directory, "monitor.series"))
    wrong = []
    if series["last_step"] < last:
        wrong.append(f"monitor.series ends at step {series['last_step']}, {last} was written")
    for one in series["series"]:
        for column, points in one["columns"].items():
            steps = [step for step, _ in points]
            if steps != list(range(steps[0], steps[0] + len(steps))) or steps[-1] < last:
                wrong.append(
                    f"{one['table']} {one['name']} {column}: steps {steps[0]} to {steps[-1]}, {len(steps)} of them"
                )
    for path in glob.glob(os.path.join(directory, "*.csv")):
        name = os.path.basename(path)
        if int(name.rsplit("-", 1)[1][:-4]) <= last and not rows_are_whole(path):
            wrong.append(f"{name} is not whole")
    tables = {os.path.basename(path).rsplit("_", 1)[0] for path in glob.glob(os.path.join(directory, "*_1-1.csv"))}
    wrong += [f"no {t} of step {last}" for t in tables if not os.path.exists(f"{directory}/{t}_{last}-{last}.csv")]
    return wrong


def killed(base, seconds):
    """kill -9 so long after the first step. Returns (steps that had ended, what is wrong)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        training = Training(base, EVERYTHING)
        for number in range(100_000):
            training.step()
            os.write(write, b"%d\n" % number)
        os._exit(1)
    os.close(write)
    select.select([read], [], [])
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with os.fdopen(read) as file:
        last = int(file.read().split()[-1])
    return last + 1, whole_files(base, last) if last > 0 else []


def losses_without(base, steps):
    training = Training(base + ".bare")
    training.step(steps)
    return training.losses


def full_disk(base):
    """A disk of 300 KB fills up; later there is room again."""
    mounted(base, "size=300k")
    training = Training(base, {**EVERYTHING, "step_count_per_record": 1000})
    training.step(60)
    (directory,) = glob.glob(os.path.join(base, "monitor", "*-rank0-*"))
    assert not _core.read_series(os.path.join(directory, "monitor.series"))["cut_off"]
    for path in glob.glob(os.path.join(directory, "*.csv")):
        assert os.path.getsize(path) == 0 or rows_are_whole(path), path
    assert training.losses == losses_without(base[:-5], 60)


def read_only(base):
    """A directory that cannot be written when the monitor is made."""
    mounted(base, "size=1m,ro")
    try:
        Training(base, EVERYTHING)
    except ValueError as error:
        print(error)
    else:
        raise AssertionError("the monitor began")


def read_only_later(base):
    """The file system becomes read-only in mid-run, as it does after an error of the disk."""
    mounted(base, "size=8m")
    training = Training(base, EVERYTHING)
    training.step(2)
    (directory,) = glob.glob(os.path.join(base, "monitor", "*-rank0-*"))
    subprocess.run(["mount", "--bind", directory, directory], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", directory], check=True)
    training.step(3)
    subprocess.run(["umount", "-l", directory], check=True)
    assert training.losses == losses_without(base[:-5], 5)


def mounted(path, options):
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)


def twice(base):
    """Two monitors on one model and optimizer: each has its own directory, and both the same values."""
    training = Training(base, EVERYTHING)
    training.watch(EVERYTHING)
    training.step(3)
    first, second = (
        _core.read_series(os.path.join(d, "monitor.series"))["series"] for d in glob.glob(base + "/monitor/*-rank0-*")
    )
    assert len(first) > 50 and len(first) == len(second), (len(first), len(second))
    assert not set(map(repr, first)) ^ set(map(repr, second)), sorted(set(map(repr, first)) ^ set(map(repr, second)))[
        :4
    ]
    assert training.losses == losses_without(base, 3)


def set_twice(base):
    """set_monitor() again, with the same model wrapped anew in mid-run: the first hooks are gone, the values go on."""
    training = Training(base, EVERYTHING)
    training.step(2)
    wrapped = torch.nn.Sequential(training.model)
    training.monitor.set_monitor(wrapped, training.optimizer, start_iteration=2)
    training.model = wrapped
    training.step(2)
    (directory,) = glob.glob(base + "/monitor/*-rank0-*")
    series = _core.read_series(os.path.join(directory, "monitor.series"))
    steps = {
        one["name"]: [s for s, _ in one["columns"]["norm"]]
        for one in series["series"]
        if one["table"] == "param_updated"
    }
    assert steps["head.weight"] == [0, 1] and steps["0.head.weight"] == [2, 3], steps
    assert training.losses == losses_without(base, 4)


def rewrapped(base):
    """The parameters are replaced by new ones behind the monitor's back: it says which series fell silent."""
    training = Training(base, {"wg_distribution": True})
    training.step(2)
    training.model.load_state_dict({k: v.clone() for k, v in training.model.state_dict().items()}, assign=True)
    training.optimizer.param_groups[0]["params"] = list(training.model.parameters())
    training.step(2)


def configuration(base):
    """DYNAMIC_MONITOR: the configuration is changed, made invalid, and mended while the run goes on."""
    os.environ["DYNAMIC_MONITOR"] = "True"
    training = Training(base, {"dynamic_on": False})
    path = training.monitor.config_file_path
    for number, config in enumerate(({"wg_distribution": True}, {"ops": 3}, {"param_distribution": True})):
        training.configure({"dynamic_on": True, **config})
        os.utime(path, (number + 1, number + 1))
        training.step(2)
    assert training.losses == losses_without(base, 6)


# case -> (what is run, what the log has to say, what it must not say)
CASES = {
    "full disk": (full_disk, ("cannot be continued",), ()),
    "read-only directory": (read_only, ("Read-only file system",), ()),
    "read-only in mid-run": (read_only_later, ("step 2 is not complete",), ("it ends here",)),
    "constructed twice": (twice, (), ("it ends here",)),
    "set_monitor() on a rewrapped model": (set_twice, ("set_monitor() was called before",), ("it ends here",)),
    "parameters replaced": (rewrapped, ("have no value",), ("it ends here",)),
    "configuration changed": (configuration, ("the configuration has changed",), ("it ends here",)),
}


def run_case(name, directory):
    """Text of what is wrong; empty if nothing is."""
    work, said, not_said = CASES[name]
    base = os.path.join(directory, name.replace(" ", "_").replace("()", ""), "disk")
    os.makedirs(os.path.dirname(base))
    code, text = forked(lambda: work(base))
    if "disk" in name or "read-only" in name:
        subprocess.run(["umount", base], check=False)
    wrong = [] if code == 0 else [f"exit code {code}: {text[-2000:]}"]
    wrong += [f"it does not say '{part}': {text[-1000:]}" for part in said if part not in text]
    wrong += [f"it says '{part}': {text[-1000:]}" for part in not_said if part in text]
    return "; ".join(wrong)


def run_kills(directory, count):
    """(kills, steps that had ended in all, what is wrong)."""
    chance = random.Random(20)
    steps, wrong = 0, []
    for number in range(count):
        ended, found = killed(os.path.join(directory, f"kill{number}"), chance.uniform(0, 0.5))
        steps += ended
        wrong += [f"kill {number}: {text}" for text in found]
    return count, steps, wrong


def main():
    directory = os.path.abspath(sys.argv[1])
    os.makedirs(directory, exist_ok=True)
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with contextlib.redirect_stderr(io.StringIO()):
        count, steps, wrong = run_kills(directory, kills)
    results = {f"kill -9 at {count} random times, after {steps} steps in all": "; ".join(wrong)}
    for name in CASES:
        results[name] = run_case(name, directory)
    print("| fault | outcome |\n|---|---|")
    for name, found in results.items():
        print(f"| {name} | {found or 'as it should be'} |")
    sys.exit(any(results.values()))


if __name__ == "__main__":
    main()

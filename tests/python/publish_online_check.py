"""What becomes of a training and of its calls when they are judged while it runs, and things go wrong.

usage: python publish_online_check.py DIRECTORY [CALLS]    (CALLS: 10000; MSPROBE_BIN: the command, else the one beside this Python)

Prints the table of docs/en/lab/online.md. Each row is a training, its losses compared bit by bit with those of the training without the
tool, and the rows of all tables counted: each call that the checker acknowledged has one, and only one.
"""

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PER_STEP = 100
OWN = 11  # calls of a step beside those that are asked for


def certificates(folder):
    """server and client of one authority, as the two ends of a check have them."""
    folder.mkdir(parents=True)

    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, cwd=folder)

    openssl(*"req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca".split())
    for side in ("server", "client"):
        openssl(*f"req -newkey rsa:2048 -nodes -keyout {side}.key -out {side}.csr -subj /CN={side}".split())
        openssl(*f"x509 -req -in {side}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out {side}.crt".split())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def config(folder, **keys):
    """A config.json whose section tensor sends calls."""
    section = {"scope": [], "list": [], "online_run_ut": True, "online_end_wait": 1800, **keys}
    settings = {"task": "tensor", "dump_path": str(folder / "dump"), "rank": [], "step": [], "level": "L1"}
    path = folder / "config.json"
    path.write_text(json.dumps({**settings, "tensor": section}))
    return path


def rows(folder):
    """(step and rank, call) of each row of the result tables."""
    found = []
    for path in sorted(folder.glob("step*/rank*/accuracy_checking_result_*.csv")):
        with open(path, encoding="utf-8-sig", newline="") as file:
            found += [(str(path.parent), row[0]) for row in list(csv.reader(file))[1:]]
    return found


class Run:
    """A training and its checker in a directory."""

    def __init__(self, folder, steps, place=None, tls=None, token=None, **keys):
        self.folder, self.steps = folder, steps
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.port = free_port()
        where = {"nfs_path": str(place)} if place else {"host": "127.0.0.1", "port": self.port}
        where |= {"tls_path": str(tls)} if tls else {}
        where |= {"token_path": str(token)} if token else {}
        self.config = config(folder, **{**where, **keys})
        self.options = ["--online", place or f"127.0.0.1:{self.port}"]
        self.options += ["--tls_path", tls] if tls else []
        self.options += ["--token_path", token] if token else []
        self.checker, self.training = None, None

    def check(self):
        """Starts the checker."""
        command = os.environ.get("MSPROBE_BIN") or str(Path(sys.executable).with_name("msprobe"))
        words = [command, "acc_check", *map(str, self.options), "-o", str(self.folder / "out"), "--json"]
        env = {"MSPROBE_PYTHON": sys.executable, **os.environ, "OMP_NUM_THREADS": "1"}
        with open(self.folder / "checker.err", "a") as errors:
            self.checker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, env=env, text=True)
        return self

    def train(self, *more):
        """Starts the training."""
        words = [sys.executable, HERE / "online_scenario.py", self.config, self.steps, PER_STEP - OWN, *more]
        with open(self.folder / "training.err", "w") as errors:
            self.training = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=errors, text=True)
        return self

    def losses(self):
        """Those of the training, which is at its end then."""
        out, _ = self.training.communicate()
        assert self.training.returncode == 0, (self.folder / "training.err").read_text()
        return json.loads(out)

    def acked(self):
        """How many calls the training says the checker keeps, and how many steps were left out."""
        said = re.findall(r"online check: (\d+) calls.*?, (\d+) are not, (\d+) steps", self.told())
        return tuple(map(int, said[-1])) if said else None

    def told(self):
        """What the training has written."""
        return (self.folder / "training.err").read_text()

    def summary(self):
        """Of the checker, which is at its end then."""
        out, _ = self.checker.communicate()
        assert self.checker.returncode == 0, (self.folder / "checker.err").read_text()
        return json.loads(out)

    def kill(self):
        """As the machine of the checker being switched off."""
        self.checker.send_signal(signal.SIGKILL)
        self.checker.wait()

    def wait_for_rows(self, count):
        """Until so many calls have rows."""
        while len(rows(self.folder / "out")) < count:
            time.sleep(0.2)


def shout(port, data):
    """Somebody who does not speak the protocol."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(data)
        connection.settimeout(20)
        try:
            while connection.recv(65536):
                continue
        except OSError:
            return


def garbage(run):
    """Noise, an endless header, a lie about the version, a frame cut off, and half of a TLS greeting."""
    prefix = b"MSPO\x00\x01\x00\x00"
    for data in (
        os.urandom(4096),
        prefix + b"\xff" * 12,
        b"MSPO\x00\x63" + b"\0" * 14,
        prefix + b"\0\0\0\x40" + b"\0" * 8 + b"{",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ):
        shout(run.port, data)


def killed(run):
    for share in (0.2, 0.6):
        run.wait_for_rows(share * run.steps * PER_STEP)
        run.kill()
        time.sleep(1)
        run.check()


def stopped(run):
    """Slow: it stands still until the training has left out steps, or is done."""
    everything = [run.checker.pid, *children(run.checker.pid)]
    for process in everything:
        os.kill(process, signal.SIGSTOP)
    while run.training.poll() is None and "not recorded while" not in run.told():
        time.sleep(0.1)
    for process in everything:
        os.kill(process, signal.SIGCONT)


def children(process):
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def everything(run):
    garbage(run)
    killed(run)


def losses_without(steps):
    """Those of the training without the tool."""
    words = [sys.executable, HERE / "online_scenario.py", "none", steps, PER_STEP - OWN]
    return json.loads(subprocess.run(list(map(str, words)), check=True, capture_output=True).stdout)


def main():
    folder, calls = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if sys.argv[2:] else 10000
    steps = calls // PER_STEP
    tls, token = folder / "tls", folder / "token"
    shutil.rmtree(folder, ignore_errors=True)
    certificates(tls)
    token.write_text("a token of the online check\n")
    token.chmod(0o600)
    (folder / "wrong").write_text("another token than the right one\n")
    (folder / "wrong").chmod(0o600)
    (folder / "share").mkdir()
    safe = {"tls": tls, "token": token}
    few = max(steps // 10, 5)
    cases = {
        "killed and restarted twice, garbage on the wire": (Run(folder / "all", steps, **safe), everything),
        "nothing goes wrong": (Run(folder / "plain", few, **safe), None),
        "shared folder": (Run(folder / "folder", few, place=folder / "share"), None),
        "checker stands still, queue of 1 MB": (
            Run(folder / "slow", few, **safe, online_queue_mb=1, online_wait=0.05),
            stopped,
        ),
        "wrong token": (Run(folder / "refused", few, tls=tls, token=folder / "wrong"), None),
    }
    own = {count: losses_without(count) for count in (steps, few)}
    print(
        "| what happens | calls made | losses | acknowledged | rows | twice | steps left out |\n|---|---|---|---|---|---|---|"
    )
    for name, (run, event) in cases.items():
        if name == "wrong token":
            run.options[-1] = token
        run.check()
        time.sleep(2)
        run.train()
        if event:
            event(run)
        same = "the same bits" if run.losses() == own[run.steps] else "DIFFERENT"
        acked, _, left_out = run.acked() or (0, 0, run.steps)
        if name == "wrong token":
            run.kill()
        else:
            run.summary()
        found = rows(run.folder / "out")
        twice = len(found) - len(set(found))
        cells = (name, f"{run.steps * PER_STEP:,}", same, f"{acked:,}", f"{len(found):,}", twice, left_out)
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()

"""Running a command of either tool: its time, its peak memory, and when its first line came."""

import concurrent.futures
import os
import pathlib
import selectors
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ROOT / ".venv"
OLD = ROOT / ".venv-old"
OURS_MINDSPORE = ROOT / ".venv-ms"
OLD_MINDSPORE = ROOT / ".venv-ms-old"


def command_of(tool):
    """A release build of ours may be named by MSPROBE_BIN."""
    if tool == "ours":
        return os.environ.get("MSPROBE_BIN") or str(OURS / "bin" / "msprobe")
    return str(OLD / "bin" / "msprobe")


# The peak of a process counts what it had before it became the command: this small one starts it, not the bench itself.
_STARTER = """
import os, sys, time
begin = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
said = f"{begin} {time.perf_counter() - begin} {usage.ru_maxrss} {os.waitstatus_to_exitcode(status)}"
os.write(int(sys.argv[1]), said.encode())
"""


def measured(command, env=None, first=False):
    """Wall seconds, peak resident memory in MB and, when `first`, seconds to the first line on stdout."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith(("MSPROBE_", "OMP_"))}
    command = [str(c) for c in command]
    answer, told = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _STARTER, str(told), *command],
        env={**clean, **(env or {})},
        stdout=subprocess.PIPE if first else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(told,),
    ) as starter:
        os.close(told)
        line = None
        if first:
            with selectors.DefaultSelector() as waiting:
                waiting.register(starter.stdout, selectors.EVENT_READ)
                waiting.select()
                line = time.perf_counter()
            starter.stdout.read()
    with os.fdopen(answer) as file:
        begin, seconds, peak_kb, code = map(float, file.read().split())
    if code != 0:
        sys.exit(f"{' '.join(command)} failed with exit code {code:.0f}")
    return {"seconds": seconds, "peak_mb": peak_kb / 1024, "first_s": line - begin if first else None}


def repeated(runs, run):
    """Median time and the largest peak of several runs."""
    results = [run() for _ in range(runs)]
    out = {
        "seconds": statistics.median(r["seconds"] for r in results),
        "peak_mb": max(r["peak_mb"] for r in results),
    }
    lines = [r["first_s"] for r in results if r["first_s"] is not None]
    if lines:
        out["first_s"] = statistics.median(lines)
    return out


def evict(directory):
    """Puts the files of a directory out of memory; returns their bytes."""
    os.sync()
    total = 0
    for path in sorted(pathlib.Path(directory).rglob("*")):
        if not path.is_file():
            continue
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        total += path.stat().st_size
    return total


def read_all(directories, readers=1):
    """Seconds to read every file once, in large pieces and nothing else."""
    files = [p for d in directories for p in sorted(pathlib.Path(d).rglob("*")) if p.is_file()]

    def read(share):
        buffer = bytearray(8 << 20)
        for path in share:
            with open(path, "rb", buffering=0) as f:
                while f.readinto(buffer):
                    pass

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(readers) as pool:
        list(pool.map(read, (files[i::readers] for i in range(readers))))
    return time.perf_counter() - start

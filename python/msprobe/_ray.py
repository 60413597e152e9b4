"""The process in which `msprobe graph_visualize --engine ray` talks to a Ray cluster.

Descriptor 0 is a socket to the command. A line comes in, {"command": [...], "directory": text, "cwd": text, "pairs": N}. For each pair a
task runs the command with `--part I -o DIRECTORY`, and a line {"pair": I, "code": exit code, "why": text, "warning": text} goes
out when it has ended; {"error": text} when nothing can be done at all.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys

ERROR = "[msprobe] error: "


def build(command, cwd, threads, home):
    """Builds one graph on a machine of the cluster. Returns exit code, reason and warnings; `home` is the host of the command."""
    env = {**os.environ, "MSPROBE_THREADS": str(threads)}
    env.pop("MSPROBE_PLAIN", None)  # the command line says it
    host = socket.gethostname()
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        return 4, f"{command[0]} cannot be run on {host}: {error}", ""
    lines = done.stderr.splitlines()
    why = [line[len(ERROR) :] for line in lines if line.startswith(ERROR)]
    ended = f"the task was ended by signal {-done.returncode}" if done.returncode < 0 else ""
    reason = why[-1] if why else ended
    if reason and host != home:
        reason += f" (on {host})"
    return done.returncode, reason, "\n".join(line for line in lines if not line.startswith(ERROR))


def start(request, ray):
    """Submits a task per pair, as many at a time as the cluster has cores. Returns {task: pair}."""
    if not ray.is_initialized():
        # RAY_ADDRESS names a running cluster; without it one is started here and ends with this process.
        # Said in so many words: Ray would look for one that once ran on this machine, and wait for it.
        own = {} if os.environ.get("RAY_ADDRESS") else {"address": "local", "include_dashboard": False}
        ray.init(logging_level="ERROR", log_to_driver=False, **own)
    cores = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    # A task that wants more than a machine has would wait for ever.
    threads = max(1, min(sum(cores) // request["pairs"], min([n for n in cores if n > 0], default=1)))
    task = ray.remote(build).options(num_cpus=threads, max_retries=1)
    command = [*request["command"], "-o", request["directory"]]
    more = (request["cwd"], threads, socket.gethostname())
    return {task.remote([*command, "--part", str(i)], *more): i for i in range(request["pairs"])}


def main():
    """Runs the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command has it as well, and closes its end
    channel = socket.socket(fileno=0)
    with channel, channel.makefile("r", encoding="utf-8") as stream:

        def send(answer):
            try:
                channel.sendall((json.dumps(answer) + "\n").encode())
            except ConnectionError:  # the command has ended, it has no use for the other graphs
                sys.exit()

        request = json.loads(stream.readline() or "null")
        if request is None:
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anyone
        try:
            import ray
        except ImportError:
            send({"error": f"{sys.executable} has no package ray: pip install 'msprobe[ray]'"})
            return
        try:
            tasks = start(request, ray)
        except (ConnectionError, RuntimeError, ValueError) as error:
            send({"error": f"no Ray cluster: {error}"})
            return
        left = list(tasks)
        while left:
            done, left = ray.wait(left, num_returns=1, timeout=0.5)
            if not done:
                if select.select([channel], [], [], 0)[0]:
                    return  # the command has ended, or was stopped
                continue
            [ready] = done
            try:
                code, why, warning = ray.get(ready)
            except ray.exceptions.RayError as error:  # the machine is gone
                code, why, warning = 4, f"the task was lost: {type(error).__name__}", ""
            send({"pair": tasks[ready], "code": code, "why": why, "warning": warning})


if __name__ == "__main__":
    main()

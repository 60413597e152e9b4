"""Runs scripts in forks of a warm interpreter, one for each Python, list of modules and LD_PRELOAD, instead of starting one each time."""

import atexit
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

SERVER = Path(__file__).resolve().parent / "warm_server.py"
_servers = {}
_lock = threading.Lock()
_used = []


class Server:
    def __init__(self, python, modules, env):
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [str(python), str(SERVER), str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                cwd="/",
                env=env,
                pass_fds=[theirs.fileno()],
            )

    def run(self, argv, *, warnings, cwd, env, timeout):
        """(exit code, stdout, stderr) of a script, as subprocess.run has them."""
        request = {"argv": argv, "warnings": warnings, "cwd": str(cwd or os.getcwd()), "env": env}
        answer, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reads, writes = zip(os.pipe(), os.pipe())
        with answer:
            with theirs:
                with _lock:
                    socket.send_fds(self._asking, [json.dumps(request).encode()], [*writes, theirs.fileno()])
            for write in writes:
                os.close(write)
            texts = [None, None]
            readers = [threading.Thread(target=_read, args=(read, texts, i)) for i, read in enumerate(reads)]
            for reader in readers:
                reader.start()
            child = int(self._line(answer))
            answer.settimeout(timeout)
            try:
                code, used = self._line(answer).split()
            except TimeoutError:
                os.kill(child, 9)
                raise subprocess.TimeoutExpired(argv, timeout) from None
            for reader in readers:
                reader.join()
        with _lock:
            _used.append(float(used))
        return int(code), *texts

    def _line(self, answer):
        found = answer.recv(64)
        assert found, f"the warm interpreter ended: {self._process.poll()}"
        return found.decode()

    def stop(self):
        self._asking.close()
        self._process.wait(timeout=30)


def _read(descriptor, texts, index):
    with open(descriptor, encoding="utf-8") as stream:
        texts[index] = stream.read()


def processor_seconds():
    """Of all children so far."""
    return sum(_used)


def _stop_all():
    for server in _servers.values():
        server.stop()


atexit.register(_stop_all)


def run_warm(python, modules, argv, *, server_env, **options):
    """In the interpreter `python` that has imported `modules`; see Server.run()."""
    key = (str(python), tuple(modules), server_env.get("LD_PRELOAD"))
    with _lock:
        if key not in _servers:
            _servers[key] = Server(python, modules, server_env)
    return _servers[key].run(argv, **options)

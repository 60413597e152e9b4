"""A warm interpreter: `warm_server.py FD MODULE ...` imports the modules, then runs each script it is asked for in a fork.

Asked over the socket FD by warm.py. Exit codes, tracebacks, threads waited for and atexit handlers are those of `python
script.py`; one frame of this file is below the script's, and modules are not taken apart at the end.
"""

import contextlib
import gc
import importlib
import json
import os
import random
import signal
import socket
import sys
import warnings

from forked import leave, settle


def forked_main(request, streams):
    """Makes this child what `python script.py` begins as; returns the script's path."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, stream in enumerate(streams, start=1):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for action in request["warnings"]:
        sys.warnoptions.append(action)
        warnings.simplefilter(action)
    script = request["argv"][0]
    sys.argv[:] = request["argv"]
    sys.orig_argv[1:] = request["argv"]
    paths = os.environ.get("PYTHONPATH", "")
    sys.path[:] = [os.path.dirname(os.path.realpath(script)), *filter(None, paths.split(os.pathsep)), *sys.path[1:]]
    importlib.invalidate_caches()
    settle()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    random.seed()
    return script


def serve(asked):
    """Forks for each request until nobody can ask any more. Returns in the children alone, with the script to run."""
    waker, wakes = socket.socketpair()
    for end in (waker, wakes):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    importlib.import_module("array")  # for recv_fds
    selectors = importlib.import_module("selectors")
    selector = selectors.DefaultSelector()
    selector.register(asked, selectors.EVENT_READ)
    selector.register(wakes, selectors.EVENT_READ)
    running = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is wakes:
                wakes.recv(4096)
                reap(running)
                continue
            message, streams, _, _ = socket.recv_fds(asked, 1 << 20, 3)
            if not message:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                for end in (asked, waker, wakes, selector, *running.values()):
                    end.close()
                os.close(streams.pop())
                return forked_main(json.loads(message), streams)
            *outputs, answer = streams
            for stream in outputs:
                os.close(stream)
            running[pid] = socket.socket(fileno=answer)
            tell(running[pid], str(pid))


def tell(answer, text):
    with contextlib.suppress(OSError):  # whoever asked may have given up
        answer.send(text.encode())


def reap(running):
    while running:
        pid, status, used = os.wait4(-1, os.WNOHANG)
        if pid == 0:
            return
        answer = running.pop(pid, None)
        if answer:
            tell(answer, f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}")
            answer.close()


def run_as_main(path):
    """The module __main__ and the code of a script."""
    main = type(sys)("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True), main.__dict__


def code_of(exit_):
    """The exit code of a SystemExit; what is not a number is printed."""
    if exit_.code is None or isinstance(exit_.code, int):
        return (exit_.code or 0) & 0xFF
    print(exit_.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()  # children share these pages as long as nobody counts in them
    script = serve(socket.socket(fileno=int(sys.argv[1])))
    code = 0
    try:
        exec(*run_as_main(script))
    except SystemExit as error:
        code = code_of(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - reported as the interpreter does, without the frame above
        error.with_traceback(error.__traceback__.tb_next)
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    leave(code)

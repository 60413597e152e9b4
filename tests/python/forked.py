"""Children of an interpreter that has imported what they need, as importing takes longer than most of them."""

import atexit
import os
import sys
import threading
import traceback


def settle():
    """What a forked child mends before it starts threads. torch makes its thread pool anew when it is next used, and of two
    threads that use it at once one can find none ("Invalid thread pool"): so it is used here, where there is one thread."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(torch.get_num_threads())


def leave(code):
    """Ends a child as an interpreter ends, but for taking apart a thousand modules, which takes longer than most scripts."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(code)


def fork(function, *args, log=None):
    """Calls the function in a child, whose output goes to the file `log` if there is one; returns the child's number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        settle()
        if log:
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
        function(*args)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it was, it goes to the log and the child ends here
        traceback.print_exc()
    finally:
        leave(code)

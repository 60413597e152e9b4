"""Objects that ranks exchange are padded to one size by memory that nobody writes: no difference of two runs."""

from graph_cases import run
from launch import run_python

SCRIPT = """
import ctypes, os, socket, sys, traceback
import torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger

BROKEN = sys.argv[2] == "broken"
ctypes.CDLL(None).mallopt(-6, int(sys.argv[1]))  # M_PERTURB: fresh memory holds something
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]

def rank(number):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(number), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=sys.argv[1])
    debugger.start()
    gathered = [None, None]
    for longer in (30, 20, 40):
        dist.all_gather_object(gathered, "text" * (longer if number else 3))
    torch.relu(torch.ones(3) * (2 if BROKEN else 1))
    dist.gather_object("text" * (3 if number else 30), None if number else gathered)
    debugger.stop()
    debugger.step()
    dist.barrier()
    dist.destroy_process_group()

children = []
for number in range(2):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            rank(number)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
    children.append(pid)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


def test_two_runs_with_other_memory(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    for memory, kind in (("90", "same"), ("165", "same"), ("60", "broken")):
        run_python([tmp_path / "script.py", memory, kind], cwd=tmp_path)
    said = run(["compare", "-tp", "90", "-gp", "165", "-o", "same"], cwd=tmp_path, env={"LC_ALL": "C"}).stdout
    assert said.startswith("No difference"), said
    # What really differs is still named.
    said = run(
        ["compare", "-tp", "60", "-gp", "165", "-o", "broken"], cwd=tmp_path, env={"LC_ALL": "C"}, check=False
    ).stdout
    assert said.startswith("Origin: Tensor.__mul__.0.forward: "), said

"""Communications of two ranks, features of attention, and the reductions of devices, against plain formulas."""

import json

import monitor_files
import pytest
from test_monitor import HEAD

COMMUNICATIONS = """
import socket
import torch.distributed as dist
from msprobe.pytorch import TrainerMon

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]

def rank(number):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(number), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    model, optimizer = model_and_optimizer()
    path = config(f"config{number}.json", cc_distribution={"enable": True, "cc_pre_hook": True},
                  ops=["norm", "min", "max", "mean", "nans"], ndigits=12)
    monitor = TrainerMon(path)
    monitor.set_monitor(model, optimizer)
    for _ in range(2):
        tensor = torch.tensor([1.0, 2.0, float(number)])
        dist.all_reduce(tensor)
        later = torch.full((4,), float(number + 1))
        work = dist.all_reduce(later, async_op=True)
        work.wait()
        gathered = [torch.zeros(2) for _ in range(2)]
        dist.all_gather(gathered, torch.tensor([number, 5.0]))
        step(model, optimizer)
    monitor.close()
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
            sys.stderr.flush()
            os._exit(code)
    children.append(pid)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


def test_communications_of_two_ranks(run_script, tmp_path):
    done = run_script(HEAD + COMMUNICATIONS, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    assert " it ends here" not in done.stderr
    for rank, directory in monitor_files.directories(str(tmp_path)).items():
        for step in range(2):
            header, *rows = monitor_files.tables(directory)[f"other_{step}-{step}.csv"]
            assert header == ["vpp_stage", "name", "step", "norm", "min", "max", "mean", "nans", "shape", "dtype"]
            found = {row[1]: [None if cell == "nan" else float(cell) for cell in row[3:8]] for row in rows}
            own = [5 + rank**2, 4 * (rank + 1) ** 2]
            # Both calls of all_reduce are one row: norms and counts of NaN added, means averaged.
            assert found["all_reduce.pre_0"][0] == pytest.approx(sum(n**0.5 for n in own))
            assert found["all_reduce.post_0"][:3] == pytest.approx([21**0.5 + 36**0.5, 1, 4])
            assert found["all_reduce.post_0"][3:] == pytest.approx([(7 / 3 + 3) / 2, 0])
            assert found["all_gather.pre_0"] == [0, 0, 0, 0, 0]
            assert found["all_gather.post_0"] == pytest.approx([51**0.5, 0, 5, 11 / 4, 0])
            assert found["all_gather.post_1"][2] == 5


ATTENTION = """
from msprobe.pytorch import TrainerMon

class Core(torch.nn.Module):
    def forward(self, query, key, value):
        return query * key + value

class Whole(torch.nn.Module):
    def __init__(self, order):
        super().__init__()
        self.order, self.attention, self.linear = order, Core(), torch.nn.Linear(8, 8)
    def forward(self, query, key):
        return self.linear(self.attention(query, key, key))

truth = {}
for order in ("s,b,h,d", "b,s,h,d"):
    os.environ["MONITOR_OUTPUT_DIR"] = order[0]
    torch.manual_seed(1)
    model = Whole(order)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = TrainerMon(config(recording_l2_features=True, sa_order=order, ndigits=12,
                                l2_targets={"attention_hook": ["0:attention"], "linear_hook": ["0:linear"]}))
    monitor.set_monitor(model, optimizer)
    query, key = torch.randn(5, 5, 2, 8), torch.randn(5, 5, 2, 8)
    model(query, key).sum().backward()
    weight = model.linear.weight.detach().double().clone()
    optimizer.step()
    monitor.close()
    q, k = ((t[:, 0, 0] if order[0] == "s" else t[0, :, 0]).double() for t in (query, key))
    entropies, most = [], []
    for row in range(5):
        share = torch.softmax((q[row] * k[: row + 1]).sum(1) / 8**0.5, 0)
        entropies.append(-(share * share.log()).sum().item())
        most.append(share.max().item())
    largest = torch.linalg.matrix_norm(weight, 2).item()
    truth[order[0]] = [sum(entropies) / 5, sum(most) / 5, torch.linalg.matrix_norm(weight).item() / largest, largest]
json.dump(truth, open("truth.json", "w"))
"""


def test_features_are_those_of_plain_formulas(run_script, tmp_path):
    done = run_script(HEAD + ATTENTION)
    assert done.returncode == 0, done.stderr
    for order, (entropy, most, rank, largest) in json.loads((tmp_path / "truth.json").read_text()).items():
        (directory,) = (tmp_path / order).glob("*-rank0-*")
        files = monitor_files.tables(str(directory))
        _, (*_, found_entropy, found_most) = files["attention_hook_0-0.csv"]
        assert [float(found_entropy), float(found_most)] == pytest.approx([entropy, most], rel=1e-5)
        _, (*_, found_rank, found_largest) = files["linear_hook_0-0.csv"]
        # Three rounds of a power iteration do not reach the largest singular value, and come from below.
        assert 0.7 * largest < float(found_largest) <= largest * 1.0001
        assert float(found_rank) >= rank * 0.9999


DEVICE = """
from msprobe.pytorch import recorder
from msprobe._monitor.board import Board
from msprobe._monitor.config import check_config
from msprobe.pytorch.monitor import device_rows
from msprobe.pytorch.monitor.values import Values

recorder.init()
device_rows._TOGETHER, device_rows._PIECE, device_rows._CELLS = TOGETHER, 6000, 3
config_ = check_config({"format": "api", "ops": ["norm", "min", "max", "mean", "nans", "zeros"]}, "here")
board = Board("out", config_, 0, None)
values = Values(board)
torch.manual_seed(0)
cases = {"float32": torch.randn(70, 33), "bfloat16": torch.randn(5000).bfloat16(), "half": torch.randn(4096).half(),
         "double": torch.randn(3, 4).double(),
         "int64": torch.randint(-9, 9, (50,)), "uint8": torch.randint(0, 200, (50,), dtype=torch.uint8), "scalar": torch.tensor(3.5),
         "zeros": torch.zeros(9), "nan": torch.tensor([1.0, float("nan")]),
         "inf": torch.tensor([float("-inf"), 2.0]), "strided": torch.randn(8, 8).t()[::2],
         "below": -torch.rand(77) - 1, "mask": torch.rand(9) > 0.5,
         "long below": -torch.rand(70, 1000) - 2, "long": torch.randn(70, 1000).t(), "float8": torch.randn(64).to(torch.float8_e4m3fn),
         **{f"weight {n}": torch.randn(n, 40) for n in range(1, 60, 7)}}
for name, tensor in cases.items():
    values.take([board.series("grad_reduced", f"0:{name}", "host")], [tensor])
# As tensors of a device are.
values._statistics.take([board.series("param_origin", f"0:{name}", "device") for name in cases], list(cases.values()))
values.flush()
host, device = ({tag.split("/")[0]: row for tag, row in board.rows(table).items()} for table in ("grad_reduced", "param_origin"))
for name in cases:
    for column, value in host[f"0:{name}"].items():
        other = device[f"0:{name}"][column]
        same = value == other or (value != value and other != other)
        assert same or abs(value - other) <= 2e-6 * max(abs(value), cases[name].double().abs().mean().item()), (name, column, value, other)
assert board.take([], [], 1) == []
"""


@pytest.mark.parametrize("together", [4, 1000], ids=["together", "alone"])
def test_reductions_of_devices_are_the_kernels_of_the_host(run_script, tmp_path, together):
    done = run_script(HEAD + f"TOGETHER = {together}\n" + DEVICE)
    assert done.returncode == 0, done.stderr


OFTEN = """
from msprobe import _core
from msprobe.pytorch import recorder

recorder.init()
journal = _core.MonitorJournal("out", 1e-8, 6, 1, False, False, [])
table = journal.add_table("actv", ["norm", "min", "max"], False, False)
number = journal.add_series(table, 0, "x", -1, 0, "x")

def norm(tensor):
    assert journal.take([number], [tensor], 1, True) == []
    return journal.rows(table)[0][3][0]

torch.manual_seed(0)
x = torch.randn(300, 100)
first = norm(x)
assert norm(x) == first
for change in (lambda: x.mul_(2), lambda: x.data.mul_(2), lambda: x.numpy().__imul__(2), lambda: x.data[20:35].zero_()):
    before = norm(x)
    change()
    assert norm(x) != before
    assert abs(norm(x) - x.norm().item()) < 1e-5 * x.norm().item()
for _ in range(50):  # new tensors in the memory of old ones
    y = torch.randn(300, 100)
    assert abs(norm(y) - y.double().norm().item()) < 1e-5 * norm(y)
    del y
assert abs(norm(x.t()) - x.norm().item()) < 1e-3
"""


def test_a_tensor_that_comes_again_is_read_again_when_it_has_changed(run_script, tmp_path):
    done = run_script(HEAD + OFTEN)
    assert done.returncode == 0, done.stderr

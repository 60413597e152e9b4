"""Parameters that are read while the optimizer updates them: the values are those read around the whole step."""

from test_monitor import HEAD

SCRIPT = """
import sys
from msprobe import _core
from msprobe.pytorch import TrainerMon
from msprobe.pytorch.monitor.in_step import InStep

KEYS = dict(wg_distribution=True, mv_distribution=True, param_distribution=True, ur_distribution=True, mg_direction=True)

def run(kind, names, **options):
    torch.manual_seed(7)
    model = scenario.Model()
    model.unused = torch.nn.Linear(3, 3)
    groups = [{"params": list(model.parameters())[:5], "lr": 1e-3}, {"params": list(model.parameters())[5:]}]
    optimizer = getattr(torch.optim, kind)(groups, lr=1e-2, **options)
    monitors = [TrainerMon(config(ops=["norm", "min", "zeros"], **KEYS)) for _ in range(names)]
    for monitor in monitors:
        monitor.set_monitor(model, optimizer)
    for _ in range(3):
        step(model, optimizer)
    found = []
    for monitor in monitors:
        monitor.close()
        series = _core.read_series(os.path.join(monitor.tensorboard_dir, "monitor.series"))["series"]
        found.append(sorted(map(repr, series)))
    return found, [p.sum().item() for p in model.parameters()]

read = []
begin = InStep.begin
InStep.begin = lambda self, *given: read.append(begin(self, *given)) or read[-1]
cases = {kind: {} for kind in ("Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD", "Rprop", "Adafactor")}
for kind, options in {**cases, "SGD": {"momentum": 0.9}, "AdamW ": {"foreach": True}, "Adam ": {"fused": True}}.items():
    read.clear()
    (first, second), sums = run(kind.strip(), 2, **options)
    in_step = all(read)
    goes = InStep._goes_one_by_one
    InStep._goes_one_by_one = lambda self: False
    (around,), same = run(kind.strip(), 1, **options)
    InStep._goes_one_by_one = goes
    assert first == second == around, kind
    assert sums == same, kind
    print(kind, in_step, len(first))
for name, module in list(sys.modules.items()):
    if name.startswith("torch.optim."):
        assert not any("msprobe" in getattr(f, "__module__", "") for n, f in vars(module).items() if n.startswith("_single_tensor_"))
"""


def test_values_are_those_around_the_step(run_script, tmp_path):
    done = run_script(HEAD + SCRIPT, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr
    lines = dict(line.rsplit(" ", 2)[:2] for line in done.stdout.splitlines())
    assert len(lines) == 14
    assert [kind for kind, in_step in lines.items() if in_step == "False"] == ["AdamW ", "Adam "]
    assert "a way of its own" not in done.stderr


NATIVE = """
from msprobe.pytorch.monitor.step_reader import StepReader
from msprobe.pytorch import TrainerMon
asked = []
reach = StepReader._read_before
StepReader._read_before = lambda self, *given: asked.append(given) or reach(self, *given)
torch.manual_seed(7)
model = scenario.Model()
optimizer = torch.optim.AdamW(model.parameters())
monitor = TrainerMon(config(wg_distribution=True, mv_distribution=True, param_distribution=True))
monitor.set_monitor(model, optimizer)
parameter = next(model.parameters())
step(model, optimizer)
assert not asked, "C++ reads what it can"
parameter.requires_grad_(False)
parameter.grad = None  # the step does not visit it
step(model, optimizer)
assert [id(given[0]) for given in asked] == [id(parameter)] and not asked[0][1]
asked.clear()
parameter.requires_grad_(True)
with torch.no_grad():
    optimizer.state[parameter]["exp_avg"] = optimizer.state[parameter]["exp_avg"].to_sparse()
try:
    step(model, optimizer)
except NotImplementedError as error:
    assert "lerp" in str(error), "that of the optimizer, which cannot do this"
else:
    raise AssertionError("the optimizer takes sparse moments: plant another one that C++ cannot read")
assert [id(given[0]) for given in asked] == [id(parameter)], "what C++ cannot read Python takes"
"""


def test_python_takes_only_what_cpp_cannot(run_script, tmp_path):
    done = run_script(HEAD + NATIVE, env={"MONITOR_OUTPUT_DIR": str(tmp_path / "monitor")})
    assert done.returncode == 0, done.stderr

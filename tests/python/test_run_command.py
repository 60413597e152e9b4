"""msprobe run: the dump of an unchanged script, and a run that behaves as without us."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from graph_cases import find_command
from launch import HERE, PACKAGE_ROOT, Script, run_python

LOOP = """
import sys
import torch
from train_scenario import MODELS

torch.manual_seed(1)
torch.set_num_threads(1)
model, loss_of = MODELS[sys.argv[1]]()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
debugger = None
if "--explicit" in sys.argv:
    from msprobe.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger("explicit.json")
for _ in range(3):
    if debugger:
        debugger.start(model)
    loss = loss_of()
    loss.backward()
    optimizer.step()
    if debugger:
        debugger.stop()
        debugger.step()
    optimizer.zero_grad()
    print(loss.item().hex())
"""

SMALL = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def write_config(directory: Path, name="config.json", **keys) -> Path:
    path = directory / name
    config = {"task": "statistics", "level": "mix", "dump_path": str(directory / "dump"), **keys}
    path.write_text(json.dumps(config))
    return path


def run(program, *options, cwd, env=None, paths=()) -> Script:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, paths), str(HERE), str(PACKAGE_ROOT)])
    command = [find_command(), "run", *map(str, options), "--", *map(str, program)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    return Script(done.returncode, done.stdout, done.stderr)


def entries(rank: Path) -> dict:
    return json.loads((rank / "dump.json").read_text())["data"]


def files_below(directory: Path) -> list:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*.json"))


@pytest.mark.parametrize("model", ["llama", "nested"])
def test_the_dump_is_that_of_a_script_with_our_lines(model, tmp_path):
    write_config(tmp_path, statistics={"summary_mode": "md5"})
    write_config(tmp_path, "explicit.json", dump_path=str(tmp_path / "explicit"), statistics={"summary_mode": "md5"})
    (tmp_path / "loop.py").write_text(LOOP)
    explicit = run_python(["loop.py", model, "--explicit"], cwd=tmp_path)
    attached = run([sys.executable, "loop.py", model], "--config", "config.json", cwd=tmp_path)
    assert (attached.returncode, attached.stdout) == (0, explicit.stdout), attached.stderr
    assert files_below(tmp_path / "dump") == files_below(tmp_path / "explicit")
    assert len(files_below(tmp_path / "dump")) == 12
    for name in files_below(tmp_path / "dump"):
        # Hooks of the root are on the stack; the summary names the process.
        if not name.endswith(("stack.json", "dump_summary.json")):
            assert (tmp_path / "dump" / name).read_bytes() == (tmp_path / "explicit" / name).read_bytes(), name


WATCH = """
import copy, gc, io, json, threading
import torch
from torch import nn
from msprobe._attach.step_detector import Client, StepDetector
from msprobe.pytorch import living

class Log(Client):
    def __init__(self):
        self.steps = []
    def begin(self, roots):
        self.steps.append([])
    def forward(self, what):
        if self.steps:
            self.steps[-1].append(what)
    def join(self, root, number):
        self.forward(f"join{number}")
    def over(self):
        self.forward("|")
    def close(self):
        self.forward(".")

def watch(step_by="auto"):
    global last
    gc.collect()
    log = Log()
    last = StepDetector(log, step_by)
    last.install()
    return log

class Named(nn.Linear):
    def __init__(self, name):
        super().__init__(2, 2)
        self.name = name
    def forward(self, x):
        log.forward(self.name)
        return super().forward(x)

def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)

x = torch.ones(1, 2)
found = {}
def case(function):
    global log
    log = watch(*function.__defaults__ or ())
    function()
    last.disable()
    found[function.__name__] = " ".join("".join(step) for step in log.steps)

@case
def plain():
    m = nn.Sequential(Named("m"), nn.ReLU()); o = sgd(m); loss = nn.MSELoss()
    for _ in range(3):
        loss(m(x), x).backward(); o.step()

@case
def accumulation():
    m = Named("m"); o = sgd(m)
    for i in range(6):
        m(x).sum().backward()
        if i % 3 == 2: o.step()

@case
def gan():
    d, g = Named("d"), Named("g"); od, og = sgd(d), sgd(g)
    for _ in range(3):
        d(g(x)).sum().backward(); od.step()
        d(g(x)).sum().backward(); og.step()

@case
def critics():
    d, g = Named("d"), Named("g"); od, og = sgd(d), sgd(g)
    for i in range(6):
        d(g(x)).sum().backward(); od.step()
        if i % 5 == 4:
            d(g(x)).sum().backward(); og.step()

@case
def two_optimizers_at_once():
    m = nn.Sequential(Named("m"), Named("n")); a, b = sgd(m[0]), sgd(m[1])
    for _ in range(2):
        m(x).sum().backward(); a.step(); b.step()

@case
def evaluation():
    m = Named("m"); o = sgd(m)
    m.eval()
    with torch.no_grad(): m(x)
    for _ in range(2):
        m.train(); m(x).sum().backward(); o.step()
        m.eval()
        with torch.no_grad(): m(x)

@case
def inference():
    m = nn.Sequential(Named("m"), Named("n")).eval()
    with torch.no_grad():
        for _ in range(3): m(x)

@case
def encoder_then_whole():
    m = nn.Sequential(Named("e"), Named("d")).eval()
    with torch.no_grad():
        m[0](x)
        for _ in range(2): m(x)

@case
def by_forward(step_by="forward"):
    m = Named("m"); o = sgd(m)
    for _ in range(2):
        m(x).sum().backward(); m(x).sum().backward(); o.step()

@case
def by_loader(step_by="dataloader"):
    m = Named("m"); o = sgd(m)
    for batch in torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2):
        m(batch).sum().backward(); m(batch).sum().backward(); o.step()

@case
def late_optimizer():
    m = Named("m"); o = None
    for _ in range(2):
        m(x).sum().backward(); o = o or sgd(m); o.step()

@case
def overflow():
    m = Named("m"); o = sgd(m); scaler = torch.amp.GradScaler("cpu")
    for factor in (float("inf"), 1.0):
        scaler.scale(m(x).sum() * factor).backward(); scaler.step(o); scaler.update(); o.zero_grad()

@case
def failing_forward():
    m = Named("m"); o = sgd(m)
    for bad in (True, False, True, False):
        try: m(torch.ones(1, 3) if bad else x).sum().backward()
        except RuntimeError: continue
        o.step()

@case
def other_thread():
    m = Named("m"); o = sgd(m)
    m(x).sum().backward(); o.step()
    def work():
        with torch.no_grad(): Named("t")(x)
    t = threading.Thread(target=work); t.start(); t.join()
    m(x).sum().backward(); o.step()

@case
def copies():
    m = nn.Sequential(Named("m")); o = sgd(m)
    m(x).sum().backward(); o.step()
    twin = copy.deepcopy(m)
    file = io.BytesIO(); torch.save(m, file); assert b"msprobe" not in file.getvalue(); file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert torch.equal(loaded(x), m(x)) and torch.equal(twin(x), m(x))

@case
def compiled():
    m = nn.Sequential(Named("m"), nn.ReLU()); o = sgd(m)
    c = torch.compile(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), backend="eager", fullgraph=True)
    for _ in range(3):
        c(m(x)).sum().backward(); o.step()

@case
def second_optimizer_later():
    m = nn.Sequential(Named("m"), Named("n")); a, b = sgd(m[0]), None
    for step in range(3):
        m(x).sum().backward()
        if step == 1: b = sgd(m[1])
        a.step()
        if b: m(x); b.step()

class Wrapper:
    # As ZeRO, Megatron and apex do: what steps has flat copies, in groups that each step alone.
    def __init__(self, model):
        self.groups = [[p] for p in model.parameters()]
        self.optimizer = torch.optim.SGD([{"params": [p.detach().clone().flatten()]} for (p,) in self.groups], lr=0.1)
    def zero_grad(self): pass
    def step(self):
        whole = self.optimizer.param_groups
        for group in whole:
            self.optimizer.param_groups = [group]
            self.optimizer.step()
        self.optimizer.param_groups = whole

@case
def copies_are_stepped():
    m = Named("m"); o = Wrapper(m)
    for i in range(6):
        m(x).sum().backward()
        if i % 2: o.step()

@case
def copies_of_two():
    d, g = Named("d"), Named("g"); od, og = Wrapper(d), Wrapper(g)
    for _ in range(2):
        d(g(x)).sum().backward(); od.step()
        d(g(x)).sum().backward(); og.step()

searches = []
def counted(*kinds, search=living.living):
    searches.append(kinds)
    return search(*kinds)
living.living = counted

@case
def many_steps():
    m = Named("m"); o = sgd(m)
    for _ in range(9):
        m(x).sum().backward(); o.step()

found["searches"] = len(searches)
print(json.dumps(found))
"""


def test_where_steps_begin_and_end(run_script):
    found = json.loads(run_script(WATCH).stdout)
    assert found == {
        "plain": "m|. m|. m|",
        "accumulation": "mmm|. mmm|",
        "gan": "gjoin1dgd|. gdgd|. gdgd|",
        "critics": "gjoin1dgd|. gd|. gd|. gd|. gdgd|",
        "two_optimizers_at_once": "mn|. mn|",
        "evaluation": "m|m. m|m",  # the forward behind "|" is not recorded
        "inference": "mn|. mn|. mn",
        "encoder_then_whole": "ejoin1ed|. ed",
        "by_forward": "m|. m|. m|. m",
        "by_loader": "mm|. mm|.",
        "late_optimizer": "m|. m|",
        "overflow": "m|. m|",
        "failing_forward": "mm|. mm|",
        "other_thread": "m|t. m|",
        "copies": "m|. mmjoin2mm",
        "compiled": "mjoin1|. m|. m|",
        "second_optimizer_later": "mn|. mnmn|. mnmn|",
        "copies_are_stepped": "mm|. mm|. mm|",
        "copies_of_two": "gjoin1dgd|. gdgd|",
        "many_steps": " ".join(["m|."] * 8 + ["m|"]),
        "searches": 1,  # of the heap, a tenth of a second each
    }


def test_a_run_behaves_as_without_us(tmp_path):
    """Exit codes, arguments, stdin, -m, -c, shell scripts, the user's sitecustomize, children."""
    write_config(tmp_path)
    package = tmp_path / "mine"
    package.mkdir()
    (package / "sitecustomize.py").write_text("import os\nos.environ['CUSTOMIZED'] = 'yes'\n")
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "job.py").write_text("""
import os, subprocess, sys
import torch
from small import model, train
assert torch.__spec__.loader is torch.__loader__ and "site" not in type(torch.__loader__).__module__
assert os.environ["CUSTOMIZED"] == "yes" and sys.modules["sitecustomize"].__file__.startswith(os.environ["MINE"])
assert not any(place.endswith("_attach/site") for place in sys.path)
print(sys.argv[1:], sys.stdin.read())
class Doubled(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): return model(torch.ones(4)).detach()
list(torch.utils.data.DataLoader(Doubled(), num_workers=1))
train()
child = os.fork()
if child == 0:
    train()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
train()
if sys.argv[1] == "raise": raise KeyError("mine")
sys.exit(int(sys.argv[1]))
""")
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\nexec {sys.executable} job.py 7 'two words'\n")
    mine = {"MINE": str(package)}

    def go(*program, code):
        command = [find_command(), "run", "-c", "config.json", "--dump-path", f"dump_{code}", "--", *map(str, program)]
        paths = os.pathsep.join([str(package), str(tmp_path), str(HERE), str(PACKAGE_ROOT)])
        env = {**os.environ, **mine, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, input="in", timeout=300)
        assert done.returncode == code, done.stderr
        return done

    assert go("sh", "job.sh", code=7).stdout == "['7', 'two words'] in\n"
    assert go(sys.executable, "-m", "job", "0", code=0).stdout == "['0'] in\n"
    failed = go(sys.executable, "job.py", "raise", code=1)
    assert failed.stderr.count("Traceback") == 1 and "KeyError: 'mine'" in failed.stderr
    ended = go(sys.executable, "-c", "import os; import small; small.train(); os.kill(os.getpid(), 15)", code=-15)
    assert "Traceback" not in ended.stderr
    for code in (7, 0, 1):
        dump = tmp_path / f"dump_{code}"
        assert sorted(path.name for path in dump.iterdir()) == ["step0", "step1"]
        for step in ("step0", "step1"):
            names = list(entries(dump / step / "rank"))
            assert "Functional.linear.0.forward" in names and "Functional.linear.0.backward" in names
            assert "Functional.linear.1.forward" not in names
    assert list(entries(tmp_path / "dump_-15" / "step0" / "rank")) == names  # stopped means written


def test_whoever_cannot_attach_says_so(tmp_path):
    write_config(tmp_path)
    (tmp_path / "small.py").write_text(SMALL + "train()\nprint('trained')\n")
    other = tmp_path / "other" / "msprobe"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")

    without = run([sys.executable, "small.py"], "-c", "config.json", cwd=tmp_path, paths=[other.parent])
    assert (without.returncode, without.stdout) == (0, "trained\n")
    assert without.stderr.count("\n") == 1 and "cannot import msprobe" in without.stderr
    assert sys.executable in without.stderr and not (tmp_path / "dump").exists()

    write_config(tmp_path, "wrong.json", level="L7")
    wrong = run([sys.executable, "small.py"], "-c", "wrong.json", cwd=tmp_path)
    assert (
        (wrong.returncode, wrong.stdout) == (2, "") and "level is" in wrong.stderr and "Traceback" not in wrong.stderr
    )

    own = "from msprobe.pytorch import PrecisionDebugger\nd = PrecisionDebugger('own.json')\nd.start(model)\ntrain()\nd.stop()\n"
    write_config(tmp_path, "own.json", dump_path=str(tmp_path / "own"), level="L0")
    (tmp_path / "own.py").write_text(SMALL + own + "train()\n")
    stood_back = run([sys.executable, "own.py"], "-c", "config.json", cwd=tmp_path)
    assert stood_back.returncode == 0 and "the script uses PrecisionDebugger itself" in stood_back.stderr
    assert len(entries(tmp_path / "own" / "step0" / "rank")) == 5 and not (tmp_path / "dump").exists()

    idle = run([sys.executable, "-c", "import torch"], "-c", "config.json", cwd=tmp_path)
    assert (idle.returncode, idle.stderr) == (0, "")


def test_steps_that_the_run_never_reaches_are_named(tmp_path):
    write_config(tmp_path)
    (tmp_path / "small.py").write_text(SMALL + "train()\ntrain()\n")
    late = run([sys.executable, "small.py"], "-c", "config.json", "--step", "7", cwd=tmp_path)
    assert late.returncode == 0 and "step 7 was not reached: the run had 2 steps, counted from 0" in late.stderr
    some = run([sys.executable, "small.py"], "-c", "config.json", "--step", "1,8-9", cwd=tmp_path)
    assert "2 steps, from 8 on, were not reached: the run had 2 steps" in some.stderr
    assert (tmp_path / "dump/step1").is_dir()
    whole = run([sys.executable, "small.py"], "-c", "config.json", "--step", "0-1", cwd=tmp_path)
    assert "not reached" not in whole.stderr


def test_arguments_of_the_command(tmp_path):
    write_config(tmp_path)
    for options, program, code, word in (
        ([], ["python"], 2, "--config"),
        (["-c", "config.json"], [], 2, "after '--'"),
        (["-c", "none.json"], ["python"], 3, "none.json"),
        (["-c", "config.json"], ["no-such-program"], 3, "no-such-program"),
        (["-c", "config.json"], ["python3", "-W", "ignore", "-uI", "x.py"], 2, "-I"),
        (["-c", "config.json"], ["python3", "-S", "x.py"], 2, "-S"),
        (["-c", "config.json", "--step", "one"], ["python"], 2, "--step"),
        (["-c", "config.json", "--step-by", "epoch"], ["python"], 2, "--step-by"),
        (["-c", "config.json", "--stepp", "1"], ["python"], 2, "--stepp"),
    ):
        done = run(program, *options, cwd=tmp_path)
        assert done.returncode == code and done.stderr.count("\n") == 1 and word in done.stderr, done.stderr
    assert run(["echo", "-I", "--", "$HOME"], "-c", "config.json", cwd=tmp_path).stdout == "-I -- $HOME\n"

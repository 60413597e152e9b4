"""When something is recorded: steps, tokens, single modules, switching while the run goes on, and what ends a run."""

import json
import threading

import pytest
from capture_helpers import capture, capture_each, write_config
from launch import run_python

NET = """
import glob, os, threading, time
def steps(): return sorted(int(os.path.basename(p)[4:]) for p in glob.glob("dump/step*"))
def names(step=0): return list(json.load(open(f"dump/step{step}/rank/dump.json"))["data"])
def changed(**keys):
    config = json.load(open("config.json"))
    config.update(keys)
    text = json.dumps({k: v for k, v in config.items() if v is not None})
    with open("config.json.new", "w") as file:
        file.write(text)
    os.replace("config.json.new", "config.json")
    debugger._watch._checked = 0  # the next look is due
net = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
x = torch.randn(2, 8)
def one(step=True):
    debugger.start(model=net)
    y = net(x).sum()
    debugger.stop()
    if step:
        debugger.step()
"""
FORWARDS = ["Functional.linear.0.forward", "Functional.relu.0.forward", "Tensor.sum.0.forward"]


# ---- the end of the range


def test_the_run_goes_on_after_the_last_step(tmp_path):
    body = NET + "for _ in range(6): one()\nassert steps() == [1, 3, 4]\nprint('went on')\n"
    dump = capture(tmp_path, body, step=[1, "3-4"])
    assert "went on" in dump.script.stdout
    assert dump.script.stderr.count("msprobe ends successfully.") == 1


def test_the_run_ends_after_the_last_step_when_asked(tmp_path):
    body = (
        NET
        + """
try:
    for _ in range(6): one()
except Exception as error:
    print(repr(str(error)))
one()
assert steps() == [1, 3]
"""
    )
    dump = capture(tmp_path, body, step=[1, 3], exit_after_range=True)
    assert dump.script.stdout.strip() == repr("msprobe: exit after iteration 3")
    assert [name for name in dump.names(3) if name.endswith("forward")] == FORWARDS


def test_batches_are_steps_with_enable_dataloader(tmp_path):
    body = (
        NET
        + """
from torch.utils.data import DataLoader, TensorDataset
original = torch.utils.data.dataloader._BaseDataLoaderIter.__next__
assert original.__wrapped__ is not None
loader = DataLoader(TensorDataset(torch.randn(12, 8)), batch_size=2)
seen = 0
debugger.start()  # no effect: batches are what counts
try:
    for (x,) in loader:
        net(x).sum()
        debugger.step()
        seen += 1
except Exception as error:
    print(f"{seen} {error}")
assert torch.utils.data.dataloader._BaseDataLoaderIter.__next__ is original.__wrapped__
assert len(list(loader)) == 6
print(steps(), names(2))
"""
    )
    dump = capture(tmp_path, body, step=[0, 2], enable_dataloader=True)
    assert dump.script.stdout.split("\n") == ["3 msprobe: exit after iteration 2", f"[0, 2] {FORWARDS}", ""]
    assert "start() has no effect" in dump.script.stderr


def test_batches_of_workers_and_the_end_of_the_data(tmp_path):
    body = (
        NET
        + """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(6, 8)), batch_size=2, num_workers=1)
for epoch in range(2):
    for (x,) in loader:
        net(x).sum()
print(steps(), [names(n) == names(0) for n in steps()])
"""
    )
    dump = capture(tmp_path, body, enable_dataloader=True)
    assert dump.script.stdout.strip() == f"{list(range(6))} {[True] * 6}"


# ---- one step as a block


def test_a_block_ends_its_step_however_it_is_left(tmp_path):
    body = (
        NET
        + """
def early():
    with PrecisionDebugger.record(net):
        return net(x)

class Stop(Exception): pass
early()
try:
    with debugger.record(net) as same:
        assert same is PrecisionDebugger
        net(x)
        raise Stop
except Stop:
    print("the exception passes")
for _ in range(3):
    with debugger.record(net):
        net(x)
        break

@PrecisionDebugger.record(net)
def train_step(y): return net(y)
train_step(x); train_step(x)
with debugger.record(net, step=False): net(x)
with debugger.record(net): net(x)
assert not hasattr(debugger, "nothing")
print([len(names(n)) for n in steps()])
"""
    )
    dump = capture(tmp_path, body)
    assert dump.script.stdout.split("\n") == ["the exception passes", "[2, 2, 2, 2, 2, 4]", ""]


# ---- hot reload


def test_switching_while_the_run_goes_on(tmp_path):
    body = (
        NET
        + """
one(); one()
assert steps() == []
assert not any(module._forward_hooks or module._forward_pre_hooks for module in net)
changed(dump_enable=True)
one(); one()
assert steps() == [2, 3], steps()
changed(dump_enable=None)  # the key is taken out: it stays on
one()
changed(dump_enable=False)
debugger.step()
one()
changed(dump_enable=True, level="mix", statistics={"list": ["relu"]})
one()
print(steps(), names(4), names(7))
"""
    )
    dump = capture(tmp_path, body, level="L1", dump_enable=False)
    relu = ["Functional.relu.0.forward"]
    # step 5 saw the file that turned the capture off at its end
    assert dump.script.stdout.strip() == f"[2, 3, 4, 7] {FORWARDS} {relu}"


def test_turning_it_off_within_a_step_keeps_what_is_there(tmp_path):
    body = (
        NET
        + """
debugger.start(model=net); net(x)
changed(dump_enable=False)
debugger.stop()
assert names() == FORWARDS_[:2]
one(step=False)
changed(dump_enable=True)
one()
print(names())
""".replace("FORWARDS_", repr(FORWARDS))
    )
    dump = capture(tmp_path, body, dump_enable=True)
    wanted = [*FORWARDS[:2], "Functional.linear.1.forward", "Functional.relu.1.forward", "Tensor.sum.0.forward"]
    assert dump.script.stdout.strip() == str(wanted)


@pytest.mark.parametrize("text", ['{"task": ', '{"dump_path": "dump", "dump_enable": true, "level": "L9"}'])
def test_a_file_that_cannot_be_used_turns_the_capture_off(tmp_path, text):
    body = (
        NET
        + f"""
one()
open("config.json", "w").write({text!r})
debugger._watch._checked = 0
one(); one()
open("config.json", "w").write(json.dumps(dict(dump_path="dump", dump_enable=True)))
debugger._watch._checked = 0
one()
print(steps())
"""
    )
    dump = capture(tmp_path, body, dump_enable=True)
    assert dump.script.stdout.strip() == "[0, 3]"
    assert dump.script.stderr.count("cannot be used") == 1


def test_the_file_is_looked_at_now_and_then(tmp_path):
    body = (
        NET
        + """
looks = []
look = debugger._watch._look
debugger._watch._look = lambda: looks.append(1) or look()
times = iter([100.0, 100.1, 100.2, 100.6, 100.7, 101.2] + [102.0] * 99)
import msprobe._capture.reload as reload
reload.time = type("Clock", (), {"monotonic": staticmethod(lambda: next(times))})
one(); one()
print(len(looks))
"""
    )
    assert capture(tmp_path, body, dump_enable=True).script.stdout.strip() == "3"


# ---- tokens


def test_token_range_records_these_forwards_once(tmp_path):
    body = (
        NET
        + """
debugger.start(model=net, token_range=[1, 2])
import copy, pickle
for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))): twin(x)
for _ in range(5): net(x)
debugger.stop(); debugger.step()
debugger.start(model=net, token_range=[1, 2])
for _ in range(3): net(x)
debugger.stop(); debugger.step()
assert not net._forward_pre_hooks
print(names(0))
"""
    )
    dump = capture(tmp_path, body)
    wanted = [f"Functional.{op}.{n}.forward" for n in (0, 1) for op in ("linear", "relu")]
    assert dump.script.stdout.strip() == str(wanted)


def test_a_list_of_models_counts_the_forwards_of_the_first(tmp_path):
    body = (
        NET
        + """
other = nn.Linear(8, 8)
debugger.start(model=[net, other], token_range=(0, 0))
other(x); net(x); net(x); debugger.stop()
print(names(0))
"""
    )
    dump = capture(tmp_path, body, level="L0")
    assert dump.script.stdout.strip() == str(["Module.0.0.Linear.forward.0", "Module.0.1.ReLU.forward.0"])


# ---- functions of the user


EXTENSION = """
library = torch.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x + x, "CPU")
library.define("late(Tensor x) -> Tensor")
library.impl("late", lambda x: x * 3, "CPU")
"""


def test_operators_of_the_namespaces_are_recorded(tmp_path):
    body = (
        NET
        + """
packet = torch.ops.mine.twice
debugger.start()
assert torch.ops.mine.twice is packet and packet.default is not None
torch.ops.mine.twice(x); torch.ops.mine.late(x); torch.ops.aten.relu(x)
debugger.stop(); debugger.step()
library.define("later(Tensor x) -> Tensor")
library.impl("later", lambda x: x * 3, "CPU")
torch.ops.mine.later
debugger.start()
torch.ops.mine.later(x); packet(x)
debugger.stop(); debugger.step()
assert type(packet._op).__name__ == "builtin_function_or_method"
print(names(0), names(1))
"""
    )
    dump = capture(tmp_path, body, early=EXTENSION, custom_op_namespaces=["mine", "not_there"])
    first, second = ["mine.twice.0.forward", "mine.late.0.forward"], ["mine.later.0.forward", "mine.twice.0.forward"]
    assert dump.script.stdout.strip() == f"{first} {second}"


def test_custom_functions_come_and_go(tmp_path):
    body = (
        NET
        + """
import types
kernels = types.ModuleType("kernels")
def fused(a, b): return a * b + 1
kernels.fused = fused
def run():
    debugger.start(); kernels.fused(x, x); torch.ops.mine.late(x); debugger.stop(); debugger.step()
debugger.register_custom_api(kernels, "fused")
run()
debugger.restore_custom_api(kernels, "fused")
assert kernels.fused is fused
debugger.restore_custom_api(torch, "relu")  # is not of the user, and stays
debugger.register_custom_api(kernels, "fused", "Mine")
debugger.register_custom_api(torch.ops.mine, "late", "Mine")
run()
debugger.restore_custom_api(torch.ops.mine, "late")
debugger.start(); torch.ops.mine.late(x); torch.relu(x); kernels.fused(x, x); debugger.stop(); debugger.step()
for wrong in ("nothing", "__name__"):
    try: debugger.register_custom_api(kernels, wrong)
    except Exception as error: assert wrong in str(error), error
    else: raise AssertionError(wrong)
print(names(0), names(1), names(2))
"""
    )
    dump = capture(tmp_path, body, early=EXTENSION)
    wanted = ["kernels.fused.0.forward", "Tensor.__mul__.0.forward"], ["Mine.fused.0.forward", "Mine.late.0.forward"]
    last = ["Tensor.__mul__.0.forward", "Torch.relu.0.forward", "Mine.fused.0.forward"]
    assert dump.script.stdout.strip() == f"{wanted[0]} {wanted[1]} {last}"


def test_lists_of_functions_beside_the_configuration(tmp_path):
    (tmp_path / "custom_wrap_ops.yaml").write_text("torch.Tensor: [__getitem__]\nkernels.fast:\n  - fused\n")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").write_text("")
    (tmp_path / "kernels" / "fast.py").write_text("def fused(x): return x * x\n")
    body = (
        NET
        + "import kernels.fast\ndebugger.start()\nkernels.fast.fused(x[0])\nF.gelu(x); F.silu(x)\ndebugger.stop()\nprint(names())\n"
    )
    dump = capture(tmp_path, body, early="sys.path.insert(0, '.')\n", exclude_apis=["gelu"])
    wanted = ["Tensor.__getitem__.0.forward", "kernels.fast.fused.0.forward", "Functional.silu.0.forward"]
    assert dump.script.stdout.strip() == str(wanted)


# ---- single modules


MODULE_DUMP = """
import glob
from msprobe.pytorch import module_dump, module_dump_end
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    def forward(self, x): return self.b(self.a(x))
inner, head, x = Inner(), nn.Linear(4, 2), torch.randn(2, 4)
debugger.start(model=head)
F.relu(x)
module_dump(inner, "mine")
head(inner(x)).sum().backward()
module_dump_end()
head(inner(x)).sum().backward()
module_dump(inner, "other")
head(inner(x)).sum().backward()
module_dump_end()
debugger.stop(); debugger.step()
(path,) = glob.glob("dump/step0/*/dump.json")
print(json.dumps(list(json.load(open(path))["data"])))
"""


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_module_dump_has_the_names_of_the_old_tool(tmp_path, old_python, level):
    ours = capture(tmp_path / "ours", MODULE_DUMP, level=level)
    theirs = capture(tmp_path / "theirs", MODULE_DUMP, level=level, python=old_python)
    last = [json.loads(dump.script.stdout.strip().split("\n")[-1]) for dump in (ours, theirs)]
    # The gradients of the root's own parameters; the earlier tool has none.
    of_root = [name for name in last[0] if name.startswith("Module.Linear.parameters_grad.")]
    assert of_root == [f"Module.Linear.parameters_grad.{n}" for n in range(3 if level == "mix" else 0)]
    assert [name for name in last[0] if name not in of_root] == last[1]
    assert "Module.mine.Inner.forward.1" in last[1]


OWN_MODULE = (
    NET
    + """
from msprobe.pytorch import module_dump, module_dump_end
debugger.start(model=net)
module_dump_end()  # none has begun
module_dump(net[0], "mine")
net(x)
module_dump_end()
net(x)
debugger.stop()
print(names())
"""
)


def test_a_module_of_the_model_keeps_its_names(tmp_path):
    dump = capture(tmp_path, OWN_MODULE, level="L0")
    wanted = [f"Module.{base}.forward.{n}" for n in (0, 1) for base in ("0.Linear", "1.ReLU")]
    assert dump.script.stdout.strip() == str(wanted)
    assert "module_dump: this Linear is part of the model" in dump.script.stderr


# ---- threads, children, the end of the process


def test_calls_before_construction_and_from_other_threads(tmp_path):
    early = """
import threading
from msprobe.pytorch import PrecisionDebugger, module_dump, module_dump_end
calls = [PrecisionDebugger.start, PrecisionDebugger.stop, PrecisionDebugger.step, lambda: PrecisionDebugger.save(1, "a"),
         lambda: PrecisionDebugger.set_init_step(1), lambda: PrecisionDebugger.register_custom_api(torch, "relu"),
         PrecisionDebugger.forward_backward_dump_end, module_dump_end, lambda: module_dump(nn.ReLU(), "a")]
for call in calls:
    try: call()
    except Exception as error: assert str(error) == "PrecisionDebugger instance is not created.", error
    else: raise AssertionError(call)
"""
    body = (
        NET
        + """
def in_thread(function):
    thread = threading.Thread(target=function); thread.start(); thread.join()
in_thread(lambda: debugger.start())
in_thread(lambda: net(x))
F.relu(x)
in_thread(debugger.stop)
debugger.forward_backward_dump_end()
pid = os.fork()
if pid == 0:
    debugger.start(); net(x); debugger.stop(); debugger.step(); debugger.save(x, "x")
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
in_thread(debugger.step)
debugger.start(); F.relu(x); debugger.forward_backward_dump_end(); F.relu(x); debugger.step()
same = PrecisionDebugger("nowhere.json", dump_path="/nowhere")
assert same is debugger
print(names(0), names(1), steps())
"""
    )
    dump = capture(tmp_path, body, early=early)
    first = ["Functional.linear.0.forward", "Functional.relu.0.forward", "Functional.relu.1.forward"]
    assert dump.script.stdout.strip() == f"{first} {['Functional.relu.0.forward']} [0, 1]"


def test_nothing_begins_after_the_interpreter_has_ended(tmp_path):
    body = (
        NET
        + """
import atexit
debugger.start(); net(x)
"""
    )
    # Registered before the tool's own: runs after it.
    early = """
import atexit
def late():
    debugger.start(); F.relu(x); debugger.stop(); debugger.step(); debugger.save(x, "x")
    print(steps(), names())
atexit.register(late)
"""
    assert capture(tmp_path, body, early=early).script.stdout.strip() == f"[0] {FORWARDS[:2]}"


def test_ranks_before_and_after_the_group_is_there(tmp_path):
    body = (
        NET
        + """
import torch.distributed as dist
assert "RANK" not in os.environ
one()
os.environ.update(RANK="3", WORLD_SIZE="4"); one()
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
one()
print(sorted(os.path.relpath(p, "dump") for p in glob.glob("dump/*/*")))
"""
    )
    early = "import os\nfor key in ('RANK', 'WORLD_SIZE'): os.environ.pop(key, None)\n"
    dump = capture(tmp_path, body, early=early)
    assert dump.script.stdout.strip() == "['step0/rank', 'step1/rank3', 'step2/rank3']"


KEYS_BODY = """
import pathlib, random
net, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0)), torch.ones(2, 4)
for step in range(4):
    debugger.start(model=net, rank_id=5)
    F.relu(net(x)).reshape(-1).sum().backward()
    debugger.stop(); debugger.step()
pathlib.Path("seen.json").write_text(json.dumps({
    "drawn": random.random(), "deterministic": torch.are_deterministic_algorithms_enabled(),
    "hash": os.environ.get("PYTHONHASHSEED")}))
"""
KEYS = [
    {},
    {"step": ["1-2"], "rank": ["4-6"]},
    {"rank": [1, "6-9"]},
    {"extra_info": False},
    {"seed": 7, "is_deterministic": True},
    {"seed": 7},
    {"level": "L0"},
    {"level": "mix", "task": "structure"},
    {"risk_level": "ALL"},
    {"async_dump": True, "precision": "high"},
    {"dump_enable": False},
    {"exclude_apis": ["relu"], "custom_apis": {"torch.nn.functional": ["_canonical_mask"]}},
]


@pytest.fixture(scope="module")
def by_keys(tmp_path_factory):
    return capture_each(tmp_path_factory.mktemp("keys"), KEYS_BODY, KEYS, early="import os\n")


def test_common_keys_have_their_effect(by_keys):
    def files(number):
        return sorted(str(path.relative_to(by_keys[number].root)) for path in by_keys[number].root.glob("*/*/*"))

    def ops(number):
        return list(json.loads((by_keys[number].root / "step1" / "rank5" / "dump.json").read_text())["data"])

    def seen(number):
        return json.loads((by_keys[number].root.parent / "seen.json").read_text())

    everything = ["construct.json", "dump.json", "dump_summary.json", "stack.json"]
    assert files(0) == [f"step{n}/rank5/{name}" for n in range(4) for name in everything]
    assert files(1) == [f"step{n}/rank5/{name}" for n in (1, 2) for name in everything]
    assert files(2) == [] and files(10) == []
    assert files(3) == [f"step{n}/rank5/{name}" for n in range(4) for name in ("dump.json", "dump_summary.json")]
    assert seen(4)["drawn"] == seen(5)["drawn"] and seen(4)["hash"] == seen(5)["hash"] == "7"
    assert (seen(4)["deterministic"], seen(5)["deterministic"]) == (True, False)
    assert all(name.startswith("Module.") for name in ops(6)) and ops(6)
    assert ops(7) == []
    assert set(ops(8)) - set(ops(0)) == {"Tensor.reshape.0.forward", "Tensor.reshape.0.backward"}
    assert ops(9) == ops(0)
    assert set(ops(0)) - set(ops(11)) == {"Functional.relu.0.forward", "Functional.relu.0.backward"}


CONSTRUCTORS = """
import json, os, sys
import torch
from msprobe.pytorch import PrecisionDebugger
net = torch.nn.Sequential(torch.nn.Linear(2, 2))
json.dump({"dump_path": "from_file", "level": "L1"}, open("config.json", "w"))
forms = {
    "of 26.x": lambda: PrecisionDebugger("config.json", "statistics", "given", "L0", [1]),
    "of 8.x": lambda: PrecisionDebugger("config.json", "statistics", "given", "L0", net, [1]),
    "8.x without a step": lambda: PrecisionDebugger("config.json", None, "given", "L0", net),
    "of the guide": lambda: PrecisionDebugger(config_path="config.json", dump_path="given", model=net, level="L0"),
    "empty text": lambda: PrecisionDebugger("config.json", dump_path="given", level="L0", task="", step=None),
    "no file": lambda: PrecisionDebugger(dump_path="given", level="L0"),
}
for name, form in forms.items():
    child = os.fork()
    if child == 0:
        debugger = form()
        for step in range(3):
            PrecisionDebugger.start(net if debugger._model is None else None)
            net(torch.ones(1, 2))
            PrecisionDebugger.stop()
            PrecisionDebugger.step()
        dumps = {step: list(json.load(open(f"given/{step}/rank/dump.json"))["data"]) for step in sorted(os.listdir("given"))}
        print(name, dumps, os.path.exists("from_file"), flush=True)
        __import__("shutil").rmtree("given")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
try: PrecisionDebugger("config.json", None, None, None, net, [1], "more")
except TypeError as error: print(error)
"""


def test_all_forms_of_the_constructor(tmp_path):
    (tmp_path / "script.py").write_text(CONSTRUCTORS)
    done = run_python(["script.py"], cwd=tmp_path)
    *lines, last = done.stdout.strip().split("\n")
    names = ["Module.0.Linear.forward.0"]
    some, all_ = {"step1": names}, {f"step{n}": names for n in range(3)}
    wanted = {"of 26.x": some, "of 8.x": some, "8.x without a step": all_, "of the guide": all_, "empty text": all_}
    assert lines == [f"{form} {dumps} False" for form, dumps in {**wanted, "no file": all_}.items()]
    assert last == "PrecisionDebugger() takes at most 6 positional arguments (7 given)"
    assert "no config_path" not in done.stderr


def test_wrong_arguments_are_named(tmp_path):
    body = (
        NET
        + """
from msprobe.pytorch import MsprobeException
calls = {
    "token_range": lambda: debugger.start(net, token_range=[2, 1]),
    "token_range is 3": lambda: debugger.start(net, token_range=3),
    "token_range and load need the model": lambda: debugger.start(token_range=[0, 1]),
    "rank_id": lambda: debugger.start(rank_id=-1),
    "set_init_step": lambda: debugger.set_init_step(True),
    "(save)": lambda: debugger.save(x, 3),
}
for text, call in calls.items():
    try: call()
    except MsprobeException as error: assert text in str(error), error
    else: raise AssertionError(text)
debugger.start(rank_id=5); F.relu(x); debugger.stop()
print(os.listdir("dump/step0"))
"""
    )
    assert capture(tmp_path, body).script.stdout.strip() == "['rank5']"


def test_the_lock_is_one_for_all_threads():
    from msprobe.pytorch import PrecisionDebugger

    assert isinstance(PrecisionDebugger._lock, type(threading.RLock()))


def test_a_path_that_cannot_be_written_does_not_end_the_training(tmp_path):
    (tmp_path / "dump").write_text("a file")
    write_config(tmp_path)
    dump = capture(tmp_path, NET + "one(); one()\nprint('went on')\n")
    assert dump.script.stdout.strip() == "went on"
    assert dump.script.stderr.count("nothing is recorded") == 1
    assert "[ERROR]" in dump.script.stderr and "dump_path" in dump.script.stderr

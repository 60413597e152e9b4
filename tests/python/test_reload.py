"""Hot reload: a change of each key takes effect when the table of keys says so, and the documents list these keys."""

import json
import re
from pathlib import Path

import pytest
from capture_helpers import capture
from msprobe._capture.config import Config
from msprobe._capture.config.keys import FILTERS, KEYS, LOAD_KEYS, NEVER, NEXT_START, NOW, READ_KEYS
from test_control import NET

DOCS = [Path(__file__).parents[2] / "docs" / language / "capture" / "config.md" for language in ("en", "zh")]

RUN = """
import contextlib, importlib, io
from pathlib import Path
from msprobe.pytorch import hooks
base = dict(debugger._config.__dict__)
START = json.load(open("config.json"))
number = 0
def data():
    at = sorted(Path("dump").glob("step*/rank*/dump.json"), key=lambda p: p.stat().st_mtime_ns)[-1]
    return json.load(open(at))
def run(section=None, **keys):
    \"\"\"One step under the first configuration with these changes: its dump.json, or None where there is none.\"\"\"
    config = {**START, **keys}
    config[config["task"]] = section or {}
    text = json.dumps(config)
    open("config.json.new", "w").write(text)
    os.replace("config.json.new", "config.json")
    debugger._watch.seen, debugger._watch._checked = None, 0
    before = set(Path(".").glob("*/step*"))
    one()
    made = sorted(set(Path(".").glob("*/step*")) - before)
    files = [f for m in made for f in m.rglob("dump.json")]
    return (json.load(open(files[0])), files[0].parent) if files else None
def names_of(result): return list(result[0]["data"])
def tensor_of(result):
    return next(iter(result[0]["data"].values()))["input_args"][0]
torch.library.define("mine::twice", "(Tensor x) -> Tensor")
torch.library.impl("mine::twice", "CompositeExplicitAutograd")(lambda t: t * 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
    def forward(self, v):
        return torch.ops.mine.twice(self.fc(v).relu()) + json.loads("1")
net = Net()
plain = lambda: run()
linear = "Functional.linear.0.forward"
checks = {}
def check(key):
    return lambda f: checks.setdefault(key, f)
"""

# Each returns whether the change counted. `plain()` is a step as the first file has it.
CHECKS = """
@check("task")
def _(): return run(task="structure", level="mix")[0]["task"] == "structure"
@check("level")
def _(): return any(n.startswith("Module.") for n in names_of(run(level="mix")))
@check("load")
def _():
    saved = run(task="tensor", level="mix", dump_path="for_load")[1]
    os.rename("for_load/" + saved.parent.name, "for_load/step%d" % (debugger._schedule.step + 1))
    plain()
    found = tensor_of(plain())["Max"]
    global x
    old, x = x, torch.zeros_like(x)
    load = {"path": "for_load", "modules": ["Module.fc.Linear.forward.0"], "dump_after_load": True}
    os.rename(next(p for p in __import__("glob").glob("for_load/step*")), "for_load/step%d" % debugger._schedule.step)
    loaded = tensor_of(run(load=load))["Max"]
    x = old
    return loaded == found != 0
@check("dump_path")
def _(): return run(dump_path="elsewhere")[1].parts[0] == "elsewhere"
@check("rank")
def _():
    debugger._rank = None
    return run(rank=[7]) is None
@check("step")
def _():
    made = run(step=[debugger._schedule.step + 1])
    return made is None
@check("extra_info")
def _(): return not (run(extra_info=False)[1] / "stack.json").exists()
@check("async_dump")
def _(): return run(async_dump=True) is not None and debugger.config.async_dump
@check("precision")
def _(): return run(precision="high") is not None and debugger.config.precision == "high"
@check("risk_level")
def _(): return "Tensor.relu.0.forward" not in names_of(run(risk_level="CORE"))
@check("custom_op_namespaces")
def _():
    some = any(n.startswith("mine.twice") for n in names_of(run(custom_op_namespaces=["mine"])))
    return some and not any(n.startswith("mine.twice") for n in names_of(plain()))
@check("budget")
def _():
    run(budget={"disk": "1GB"})
    return debugger._features.budget is not None and plain() and debugger._features.budget is None
@check("exit_after_range")
def _():
    now = debugger._schedule.step
    try:
        run(step=[now], exit_after_range=True)
        one()
    except RuntimeError as error:
        return str(error) == f"msprobe: exit after iteration {now}"
@check("scope")
def _(): return names_of(run({"scope": [linear, linear]})) == [linear]
@check("list")
def _(): return names_of(run({"list": ["relu"]})) == ["Tensor.relu.0.forward"]
@check("data_mode")
def _(): return "output" not in run({"data_mode": ["input"]})[0]["data"][linear]
@check("summary_mode")
def _(): return "md5" in tensor_of(run({"summary_mode": "md5"}))
@check("tensor_list")
def _(): return list((run({"tensor_list": ["linear"]})[1] / "dump_tensor_data").iterdir())
@check("slice")
def _(): return tensor_of(run({"slice": [{"dim": 0, "begin": 0, "end": 1}]}))["shape"] == [1, 8]
@check("request_id")
def _():
    run({"request_id": "a"})
    return debugger.config.request_id == "a"
@check("overflow_nums")
def _():
    run({"overflow_nums": 3}, task="overflow_check")
    return debugger.config.overflow_nums == 3
@check("check_mode")
def _():
    run({"check_mode": "aicore"}, task="overflow_check")
    return debugger.config.check_mode == "aicore"
@check("diff_nums")
def _():
    run({"diff_nums": 2}, task="tensor")
    return debugger.config.diff_nums == 2
@check("bench_path")
def _():
    golden = run({"summary_mode": "md5"}, dump_path="golden")[1]
    run({"bench_path": "golden", "summary_mode": "md5"}, task="tensor")
    return debugger.config.bench_path == "golden"
@check("last_ops")
def _():
    run({"last_ops": 2}, task="exception_dump")
    return debugger.config.last_ops == 2
@check("exclude_apis")
def _():
    gone = "Tensor.relu.0.forward" not in names_of(run(exclude_apis=["relu"]))
    return gone and "Tensor.relu.0.forward" in names_of(plain())
@check("custom_apis")
def _():
    some = any(n.startswith("json.loads.0") for n in names_of(run(custom_apis={"json": ["loads"]})))
    return some and not any(n.startswith("json.loads") for n in names_of(plain()))
def probe(**section):
    debugger.monitor(net)
    run(section, task="grad_probe", dump_path="probe")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(x).sum().backward()
    optimizer.step()
    file = sorted(Path("probe/rank0").glob("*.csv"), key=lambda p: p.stat().st_mtime_ns)[-1]
    return file.read_text().split("\\n")
@check("grad_level")
def _(): return "MD5" in probe(grad_level="L0")[0]
@check("param_list")
def _(): return [row.split(",")[0] for row in probe(param_list=["bias"])[1:] if row] == ["fc.bias"]
@check("bounds")
def _(): return "(2, 3]" in probe(grad_level="L2", bounds=[2, 3])[0]

plain()
for key, function in checks.items():
    assert function(), key
    assert tensor_of(plain())["shape"] == [2, 8], "the first file again after " + key
print(*checks)
"""


def test_a_change_of_each_key_counts_from_the_next_start(tmp_path):
    dump = capture(tmp_path, NET + RUN + CHECKS, dump_enable=True, dump_path="dump", risk_level="ALL")
    assert set(dump.script.stdout.split()) == {key.name for key in READ_KEYS if key.reload == NEXT_START}


def test_what_counts_from_the_next_run_on_is_told(tmp_path):
    body = (
        NET
        + """
one()
changed(seed=7, is_deterministic=True, enable_dataloader=True)
one()
assert debugger.config.seed is None and not debugger.config.enable_dataloader
assert not torch.are_deterministic_algorithms_enabled()
print(steps())
"""
    )
    dump = capture(tmp_path, body, dump_enable=True)
    assert dump.script.stdout.strip() == "[0, 1]"
    told = re.findall(r"a change of (\w+) counts from the next run on \(.*config.json, line 1\)", dump.script.stderr)
    assert set(told) == {key.name for key in KEYS if key.reload == NEVER}


def test_defaults_and_fields_are_those_of_the_table():
    config = Config()
    for key in READ_KEYS:
        assert getattr(config, key.field) == key.default and key.owner, key.name
    assert {key.name for key in KEYS if key.reload == NOW} == {"dump_enable"}


def tables(path):
    """Heading -> rows of cells; an empty first cell means the one above."""
    found: dict = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            rows = found.setdefault(len(found), [])
        elif line.startswith("| ") and not line.startswith("|---"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return [rows[1:] for rows in found.values() if rows]


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("path", DOCS, ids=["en", "zh"])
def test_the_documents_list_these_keys_with_their_defaults(path):
    common, filters, sections, load = tables(path)
    listed: dict = {}
    for cells in common:
        listed[("", code(cells[0])[0])] = cells[2]
    for cells in filters:
        listed[("*", code(cells[0])[0])] = cells[2]
    assert {name for cells in load for name in code(cells[0])} == LOAD_KEYS
    owners = ()
    for cells in sections:
        owners = code(cells[0]) or owners
        for name, default in zip(code(cells[1]), re.split(r"(?<=`)(?:, |、)(?=`)", cells[3]) + [""] * 9):
            listed.update({(owner, name): default for owner in owners})
    wanted = {(section, key.name): key for key in KEYS for section in key.sections}
    assert set(listed) == set(wanted)
    last = path.read_text(encoding="utf-8").rsplit("## ", 1)[1]
    assert all(f"`{key.name}`" in last for key in KEYS if key.reload in (NOW, NEVER))
    for place, key in wanted.items():
        shown = listed[place]
        if key.default not in (None, "", {}) and key.kind and key.sections != FILTERS:
            text = key.default if isinstance(key.default, str) else json.dumps(key.default)
            assert text in shown, (key.name, shown)

"""debugger.service and its config, by which programs say where a part of a step goes; tests of whole programs: test_programs.py."""

import pytest
from capture_helpers import capture
from test_control import NET

STAGES = (
    NET
    + """
from pathlib import Path
from msprobe.pytorch import MsprobeException
service = debugger.service
def dumps(): return sorted(str(p.parent.parent.relative_to(".")) for p in Path(".").rglob("dump.json"))
def names_in(place): return list(json.load(open(f"{place}/rank/dump.json"))["data"])
def stage(reset=service.reset_status):
    debugger.start(model=net)
    net(x).sum()
    debugger.stop()
    reset()
"""
)
FORWARDS = ["Functional.linear.0.forward", "Functional.relu.0.forward", "Tensor.sum.0.forward"]


@pytest.mark.parametrize("reset", ["service.reset_status", "service._reset_status", "lambda: None"])
def test_each_stage_has_its_own_dump(tmp_path, reset):
    """Also without a reset: what goes elsewhere is another record, and the earlier one is whole."""
    body = f"""
for name in ("first", "second", "third"):
    service.config.dump_path = "stages/" + name
    assert service.config.dump_path == "stages/" + name
    stage({reset})
debugger.step()
stage({reset})
assert dumps() == ["stages/first/step0", "stages/second/step0", "stages/third/step0", "stages/third/step1"]
assert all(names_in(place) == {FORWARDS!r} for place in dumps())
"""
    capture(tmp_path, STAGES + body)


def test_the_same_place_again_holds_the_last_record(tmp_path):
    body = f"""
stage()
x = torch.ones(5, 8)
stage()
assert dumps() == ["dump/step0"]
assert names_in("dump/step0") == {FORWARDS!r}
assert json.load(open("dump/step0/rank/dump.json"))["data"]["Functional.linear.0.forward"]["input_args"][0]["shape"] == [5, 8]
"""
    capture(tmp_path, STAGES + body)


def test_saved_values_go_where_the_stage_says(tmp_path):
    body = """
for name in ("first", "second"):
    service.config.dump_path = name
    debugger.save(x, "x")
    service.reset_status()
for name in ("first", "second"):
    assert list(json.load(open(f"{name}/step0/rank/debug.json"))["data"]) == ["x.0.debug", "x_grad.0.debug"]
"""
    capture(tmp_path, STAGES + body, level="debug")


def test_what_a_program_can_ask(tmp_path):
    body = """
assert (service.current_iter, service.current_rank, service.dump_iter_dir, service.model) == (0, None, None, None)
debugger.start(model=net, rank_id=3)
assert (service.current_rank, service.model) == (3, net) and service.dump_iter_dir.endswith("/dump/step0")
service.stop(); service.step()
assert service.current_iter == 0, "the step of the last start()"
service.start(net)
assert service.current_iter == 1
service.step()
config = service.config
assert (config.level, config.task, config.list, config.slice_info, config.load_config) == ("L1", "statistics", [], [], None)
assert hasattr(service, "config") and not hasattr(config, "nothing")
assert not service.should_stop_service
config.step = [5]
debugger.start(model=net)
assert not debugger._active
debugger.set_init_step(9)
debugger.start(model=net)
assert service.should_stop_service
"""
    capture(tmp_path, STAGES + body)


def test_other_keys_count_from_the_next_start(tmp_path):
    body = """
stage()
service.config.level = "mix"
service.config.list = ["linear"]
assert debugger._config.level == "L1" and service.config.level == debugger.config.level == "mix"
service.config.dump_path = "second"
stage()
assert debugger.config.level == "mix"
found = names_in("second/step0")
assert "Functional.linear.0.forward" in found and "Functional.relu.0.forward" not in found, found
def refused(name, value):
    try:
        setattr(service.config, name, value)
    except (MsprobeException, AttributeError) as error:
        print(error)
refused("level", "L7")
refused("dump_path", None)
refused("rank", ["x"])
refused("levels", "L0")
stage()
assert debugger.config.level == "mix"
"""
    told = capture(tmp_path, STAGES + body).script.stdout.splitlines()
    assert len(told) == 4
    assert told[0] == (
        '[msprobe] Invalid parameter: level is "L7"; allowed: L0, L1, L2, mix, debug (debugger.service.config.level)'
    )
    assert "dump_path is None" in told[1] and "rank is ['x']" in told[2] and "has no levels" in told[3]


def test_config_of_the_debugger_is_that_of_its_service(tmp_path):
    """Some programs set one, some the other, some both."""
    body = """
debugger.config.dump_path = debugger.config.dump_path + "/pid"
service.config.dump_path = debugger.config.dump_path
stage()
debugger.config.dump_path = "second"
stage()
assert dumps() == ["dump/pid/step0", "second/step0"]
assert debugger.config.task == "statistics"
for name, value in (("dump_path", 3), ("nothing", 1)):
    try:
        setattr(debugger.config, name, value)
    except (MsprobeException, AttributeError):
        print("refused")
stage()
"""
    assert capture(tmp_path, STAGES + body).script.stdout.split() == ["refused"] * 2


def test_the_signature_is_that_of_the_constructor():
    import inspect

    from msprobe.pytorch import PrecisionDebugger

    names = list(inspect.signature(PrecisionDebugger).parameters)
    assert names == ["config_path", "task", "dump_path", "level", "args", "model", "step"]


def test_the_place_stays_below_a_budget(tmp_path):
    body = """
for name in ("first", "second"):
    service.config.dump_path = name
    stage()
    debugger.step()
assert dumps() == ["first/step0", "second/step1"]
"""
    capture(tmp_path, STAGES + body, budget={"disk": "1GB"})


def test_a_program_has_the_file_read_at_once(tmp_path):
    body = """
stage()
changed(dump_enable=False)
debugger._watch._checked = time.monotonic()  # looked at a moment ago
assert not debugger._maybe_reload_config()
assert debugger._maybe_reload_config(force=True)
debugger.step()
stage()
assert steps() == [0]
assert not debugger._maybe_reload_config(force=True)
"""
    capture(tmp_path, STAGES + body, dump_enable=True)
    capture(tmp_path, STAGES + "assert not debugger._maybe_reload_config(force=True)")


def test_a_second_object_after_the_first_was_dropped(tmp_path):
    """Programs that construct one for each stage set the class attribute to None first."""
    body = """
stage(debugger.step)
PrecisionDebugger._instance = None
other = PrecisionDebugger("config.json", dump_path="second")
assert other is not debugger
debugger = other
stage(debugger.step)
assert dumps() == ["dump/step0", "second/step0"]
"""
    capture(tmp_path, STAGES + body)


def test_a_step_is_one_line_in_the_log(tmp_path):
    told = capture(tmp_path, STAGES + "for _ in range(3): stage(debugger.step)").script.stderr.splitlines()
    assert ["captured 3 ops" in line for line in told] == [True] * 3, told


@pytest.mark.parametrize(
    ("environment", "begins"),
    [
        ({}, "Invalid parameter: "),
        ({"LANG": "en_US.UTF-8"}, "Invalid parameter: "),
        ({"LANG": "zh_CN.UTF-8"}, "无效参数："),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "Invalid parameter: "),
        ({"LANG": "C", "LC_MESSAGES": "zh_TW"}, "无效参数："),
    ],
)
def test_errors_begin_in_the_language_of_the_terminal(monkeypatch, environment, begins):
    from msprobe._capture.config import MsprobeException

    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text = str(MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "level is 3"))
    assert text == f"[msprobe] {begins}level is 3"

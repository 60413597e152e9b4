"""What the recorder asks of CPython itself, on every version of it: needs no PyTorch.

A stand-in for torch with the few names the recorder looks up; hooked are functions of the standard library, one of every
calling convention, in loops long enough for the interpreter to specialise their call sites.
"""

import json
import sys

import pytest

STAND_IN = """
import collections, decimal, functools, inspect, json, math, operator, sys, traceback, types
from msprobe import _core

class Tensor: pass
class Parameter(Tensor): pass
nn = types.SimpleNamespace(Parameter=Parameter)
torch = types.SimpleNamespace(Tensor=Tensor, nn=nn, Size=(), dtype=(), device=(), is_grad_enabled=lambda: False,
                              empty=lambda *shape, **options: Tensor())
_core.init("torch", torch, lambda value, key: json.dumps(str(value)), lambda tensor, key: "null", "/nowhere/")
_core.configure(level="L1", structure=False, summary="statistics", extra_info=True, data_mode=["all"], scope=[], list=[],
                risk_level="ALL")

def hook(owner, name, prefix="F"):
    why = _core.add_api(owner, name, prefix, name, "FOCUS")
    assert why == "", why

def dumped(text):
    return json.load(open(f"out/{text}.json"))

def record(call):
    _core.start("out", "statistics", "L1")
    result = call()
    assert _core.stop() == "" and _core.end_step() == ""
    return result
"""


@pytest.fixture
def run(run_script):
    return lambda body: run_script(STAND_IN + body, fresh=True)


BUILTINS = """
cases = {
    "hypot": (math, lambda: math.hypot(3.0, 4.0)),                      # FASTCALL
    "sqrt": (math, lambda: math.sqrt(9.0)),                             # O
    "getrecursionlimit": (sys, lambda: sys.getrecursionlimit()),        # NOARGS
    "prod": (math, lambda: math.prod([2, 3], start=2)),                 # FASTCALL | KEYWORDS
    "reduce": (functools, lambda: functools.reduce(operator.sub, [9, 2, 3])),  # VARARGS, FASTCALL
    "localcontext": (decimal, lambda: decimal.localcontext() is not None),  # VARARGS | KEYWORDS
    "getattr_static": (inspect, lambda: inspect.getattr_static(math, "pi")),   # Python
}
before = {name: (getattr(owner, name), hash(getattr(owner, name)), call()) for name, (owner, call) in cases.items()}
for name, (owner, call) in cases.items():
    for _ in range(300): call()          # specialised before the hook
    hook(owner, name)
def loop():
    for name, (owner, call) in cases.items():
        for _ in range(100): assert call() == before[name][2], name
for step in range(3):
    record(loop)
    data = dumped("dump")["data"]
    for name, (owner, call) in cases.items():
        assert f"F.{name}.99.forward" in data and f"F.{name}.100.forward" not in data, (step, name)
        assert getattr(owner, name) is before[name][0] and hash(getattr(owner, name)) == before[name][1]
        for _ in range(300): assert call() == before[name][2]
assert data["F.hypot.0.forward"]["input_args"] == [
    {"type": "float", "value": 3.0}, {"type": "float", "value": 4.0}], data["F.hypot.0.forward"]
assert data["F.prod.0.forward"]["input_kwargs"] == {"start": {"type": "int", "value": 2}}
assert data["F.prod.0.forward"]["output"] == [{"type": "int", "value": 12}]
"""


def test_builtin_functions_of_every_calling_convention(run):
    run(BUILTINS)


METHODS = """
hook(collections.deque, "append"); hook(collections.deque, "extendleft"); hook(collections.deque, "clear")
hook(collections.OrderedDict, "move_to_end"); hook(decimal.Decimal, "quantize"); hook(decimal.Decimal, "copy_abs")
one, cent = decimal.Decimal("-1.234"), decimal.Decimal("0.01")
def loop():
    for _ in range(100):
        d = collections.deque(); d.append(1); bound = d.append; bound(2); collections.deque.append(d, 3)
        d.extendleft([0]); assert list(d) == [0, 1, 2, 3]; d.clear(); assert not d
        o = collections.OrderedDict(a=1, b=2); o.move_to_end("b", last=False); assert list(o) == ["b", "a"]
        assert str(one.quantize(cent, rounding=decimal.ROUND_UP)) == "-1.24" and str(one.copy_abs()) == "1.234"
        try:
            d.append()
        except TypeError as error:
            assert "append" in str(error)
        else:
            raise AssertionError("no error")
    return bound
loop()
for step in range(3):
    bound = record(loop)
    names = [n for n in dumped("dump")["data"]]
    count = lambda f: sum(n.startswith(f"F.{f}.") for n in names)
    found = [count(f) for f in ("append", "extendleft", "clear", "move_to_end", "quantize", "copy_abs")]
    assert found == [300, 100, 100, 100, 100, 100], found   # without the one that was refused
    bound(1)                              # taken while hooked, called afterwards
    loop()
"""


def test_methods_of_builtin_types(run):
    run(METHODS)


PYTHON = """
def make(scale):
    def scaled(x, /, y=2, *rest, key=3, **more):
        "doc"
        return (x * scale, y, rest, key, more)
    return scaled
owner = types.SimpleNamespace(scaled=make(10))
original = owner.scaled
signature, source, code = inspect.signature(original), inspect.getsource(original), original.__code__
def fails(x):
    raise ValueError(f"no {x}")
def recurses(n):
    return 0 if n == 0 else 1 + owner.recurses(n - 1)
def yields(n):
    yield from range(n)
class Holder:
    def method(self, x): return (self, x)
    @property
    def seven(self): return 7
owner.fails, owner.recurses, owner.yields = fails, recurses, yields
for name in ("scaled", "fails", "recurses", "yields"): hook(owner, name)
hook(Holder, "method")
holder = Holder()
def loop():
    for i in range(200):
        assert owner.scaled(i) == (i * 10, 2, (), 3, {})
        assert original(i, 1, 5, key=4, other=6) == (i * 10, 1, (5,), 4, {"other": 6})
        assert owner.recurses(5) == 5 and list(owner.yields(3)) == [0, 1, 2]
        assert holder.method(i) == (holder, i) and holder.method(x=i)[1] == i and Holder.method(holder, i)[1] == i
        try:
            owner.fails(i)
        except ValueError as error:
            lines = traceback.extract_tb(error.__traceback__)
            assert str(error) == f"no {i}" and lines[-1].name == "fails" and lines[-1].line.startswith("raise")
        else:
            raise AssertionError("no error")
    assert inspect.signature(original) == signature and inspect.getsource(original) == source
loop()
for step in range(3):
    record(loop)
    names = [n for n in dumped("dump")["data"]]
    count = lambda f: sum(n.startswith(f"F.{f}.") for n in names)
    assert [count(f) for f in ("scaled", "recurses", "yields", "method", "fails")] == [400, 200, 200, 600, 200], names[-5:]
    assert owner.scaled is original and original.__code__ is code and not hasattr(original, "__signature__")
    loop()
"""


def test_python_functions(run):
    run(PYTHON)


STACKS = """
owner = types.SimpleNamespace(outer=lambda x: inner(x))
def inner(x):
    return x + 1
owner.inner = inner
hook(math, "floor"); hook(owner, "inner")
def caller(x):
    first = (
        math.floor(x)
    )
    return first + owner.inner(1)
def loop():
    return [caller(2.5) for _ in range(50)]
record(loop)
stacks = dumped("stack")
lines = {name: frames for names, frames in stacks.values() for name in names}
print(json.dumps([lines["F.floor.0.forward"], lines["F.inner.49.forward"]]))
"""


def test_stacks_name_the_lines_of_the_script(run):
    floor, inner = json.loads(run(STACKS).stdout)
    # The line of a call that spans several is where the call stands, or where its statement begins.
    assert "in caller" in floor[0] and "math.floor(x)" in floor[0], floor
    assert "return first + owner.inner(1)" in inner[0], inner
    assert any("caller(2.5) for _ in range(50)" in frame for frame in inner), inner
    assert not any("msprobe" in frame.split(",")[0] and "script.py" not in frame for frame in inner), inner


THREADS = """
import threading
hook(math, "hypot")
def work():
    for _ in range(2000): math.hypot(3.0, 4.0)
def loop():
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
record(loop)
assert len(dumped("dump")["data"]) == 8000
"""


def test_threads(run):
    run(THREADS)


LEAKS = """
import gc
owner = types.SimpleNamespace(f=lambda x, y=0: x)
hook(math, "hypot"); hook(owner, "f"); hook(collections.deque, "append")
class Witness: pass
witness, d = Witness(), collections.deque()
def loop():
    for _ in range(500): math.hypot(3.0, 4.0); owner.f(witness, y=witness); d.append(witness)
    d.clear()
record(loop)
gc.collect(); before = sys.getrefcount(witness), sys.getrefcount(owner.f), sys.getrefcount(math.hypot)
for _ in range(5): record(loop)
gc.collect(); after = sys.getrefcount(witness), sys.getrefcount(owner.f), sys.getrefcount(math.hypot)
assert before == after, (before, after)
"""


def test_references_are_given_back(run):
    run(LEAKS)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_with_a_monitoring_tool(run):
    run("""
seen = []
m = sys.monitoring
m.use_tool_id(m.DEBUGGER_ID, "test")
m.register_callback(m.DEBUGGER_ID, m.events.LINE, lambda code, line: seen.append(line))
m.set_events(m.DEBUGGER_ID, m.events.LINE)
def f(x):
    return x + 1
owner = types.SimpleNamespace(f=f)
hook(owner, "f")
def loop():
    return [owner.f(i) for i in range(100)]
assert record(loop) == list(range(1, 101))
m.set_events(m.DEBUGGER_ID, 0)
assert len(dumped("dump")["data"]) == 100 and record(loop)[-1] == 100 and seen
""")


def test_under_a_tracer_and_a_profiler(run):
    run("""
def f(x):
    return x + 1
owner = types.SimpleNamespace(f=f)
hook(owner, "f"); hook(math, "hypot")
def loop():
    return [owner.f(i) + math.hypot(3.0, 4.0) for i in range(100)]
def trace(frame, event, argument):
    return trace
sys.settrace(trace); sys.setprofile(lambda *a: None)
result = record(loop)
sys.settrace(None); sys.setprofile(None)
assert result == [i + 6.0 for i in range(100)] and len(dumped("dump")["data"]) == 200
""")

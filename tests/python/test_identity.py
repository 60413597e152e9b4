"""Recording exchanges no function: `is`, `==`, pickle, inspect, scripting and tracing answer as without the tool."""

import pytest
from capture_helpers import capture

# What user code and libraries keep before the tool is even imported.
EARLY = """
import copy, dataclasses, functools, inspect, pickle, types
from torch import relu
from torch.nn.functional import gelu, linear, softmax

FUNCTIONS = {
    "builtin": torch.relu, "nn builtin": F.gelu, "nn builtin 2": F.linear, "python": F.relu, "dispatch": F.max_pool2d,
    "python 2": F.softmax, "method": torch.Tensor.add, "operator": torch.Tensor.__add__, "python method": torch.Tensor.norm,
    "closure": torch.Tensor.__rsub__, "split": torch.split, "einsum": torch.einsum, "conv": F.conv2d, "linalg": torch.linalg.norm,
}

def describe(function):
    try:
        signature = str(inspect.signature(function))
    except ValueError:
        signature = None
    return (type(function), repr(function), function.__name__, function.__doc__, signature, hash(function),
            getattr(function, "__module__", None), getattr(function, "__defaults__", None),
            getattr(function, "__kwdefaults__", None), isinstance(function, types.FunctionType))

def look_up():
    return {
        "builtin": torch.relu, "nn builtin": F.gelu, "nn builtin 2": F.linear, "python": F.relu, "dispatch": F.max_pool2d,
        "python 2": F.softmax, "method": torch.Tensor.add, "operator": torch.Tensor.__add__, "python method": torch.Tensor.norm,
        "closure": torch.Tensor.__rsub__, "split": torch.split, "einsum": torch.einsum, "conv": F.conv2d, "linalg": torch.linalg.norm,
    }

BEFORE = {name: describe(function) for name, function in FUNCTIONS.items()}
SOURCE = inspect.getsource(F.softmax)

def assert_same_functions():
    for name, function in look_up().items():
        assert function is FUNCTIONS[name], name
        assert function == FUNCTIONS[name] and not function != FUNCTIONS[name], name
        assert describe(function) == BEFORE[name], (name, describe(function), BEFORE[name])

@dataclasses.dataclass
class Config:
    activation_func: object = F.gelu

EARLY_CONFIG = Config()

class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        # The check of megatron.core.
        if config.activation_func != F.gelu or config.activation_func is not F.gelu:
            raise ValueError("Only support fusion of gelu")
        self.up = nn.Linear(4, 4)
        self.activation = config.activation_func

    def forward(self, x):
        return self.activation(self.up(x))

x = torch.ones(2, 4)
"""


def test_functions_stay_themselves(tmp_path):
    body = """
assert_same_functions()
debugger.start()
assert_same_functions()
assert inspect.getsource(F.softmax) == SOURCE
assert relu is torch.relu and gelu is F.gelu and linear is F.linear
for function in (torch.relu, F.gelu, F.relu, F.softmax, torch.einsum, torch.Tensor.add):
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function and copy.copy(function) is function
assert_same_functions()
debugger.stop()
assert_same_functions()
"""
    capture(tmp_path, body, early=EARLY, fresh=True)


def test_calls_through_earlier_references_are_recorded(tmp_path):
    body = """
partial, table, method = functools.partial(softmax, dim=-1), {"act": relu}, torch.Tensor.mul
debugger.start()
bound = x.mul
relu(x); gelu(x); partial(x); table["act"](x); method(x, 2); bound(3); list(map(relu, [x])); EARLY_CONFIG.activation_func(x)
debugger.stop()
relu(x); gelu(x); partial(x)
"""
    assert capture(tmp_path, body, early=EARLY).names() == [
        "Torch.relu.0.forward",
        "Functional.gelu.0.forward",
        "Functional.softmax.0.forward",
        "Torch.relu.1.forward",
        "Tensor.mul.0.forward",
        "Tensor.mul.1.forward",
        "Torch.relu.2.forward",
        "Functional.gelu.1.forward",
    ]


def test_activation_checks_of_megatron(tmp_path):
    body = """
debugger.start()
models = [Mlp(EARLY_CONFIG), Mlp(Config())]
models.append(copy.deepcopy(models[0]))
models.append(pickle.loads(pickle.dumps(models[0])))
for model in models:
    assert model.activation is F.gelu
    model(x)
assert pickle.loads(pickle.dumps(EARLY_CONFIG)) == EARLY_CONFIG
debugger.stop()
"""
    names = capture(tmp_path, body, early=EARLY).names()
    assert [name for name in names if "gelu" in name] == [f"Functional.gelu.{n}.forward" for n in range(4)]


def test_the_activation_table_of_transformers(tmp_path):
    early = "from transformers.activations import ACT2FN\nact = ACT2FN['gelu']\nquick = ACT2FN['silu']\n"
    body = """
debugger.start()
assert ACT2FN["gelu"].act is F.gelu
x = torch.ones(2)
act(x); quick(x); ACT2FN["relu"](x)
debugger.stop()
"""
    assert capture(tmp_path, body, early=early).names() == [
        "Functional.gelu.0.forward",
        "Functional.silu.0.forward",
        "Functional.relu.0.forward",
    ]


def test_operators_have_the_names_they_always_had(tmp_path):
    body = """
y = torch.ones(2, 2)
i = torch.ones(2, 2, dtype=torch.int64)
debugger.start()
y + 1; 1 + y; y - 1; 1 - y; y * 2; 2 * y; y / 2; 1 / y; y // 2; y % 2; y ** 2; 2 ** y; y @ y; -y; abs(y); ~i
i & 1; i | 1; i ^ 1; i << 1; i >> 1; y == y; y != y; y < 1; y <= 1; y > 1; y >= 1
y += 1; y -= 1; y *= 2; y /= 2; y **= 1; bool(y[0, 0]); y[0] = 1; y.neg(); y.abs()
debugger.stop()
"""
    names = capture(tmp_path, body, risk_level="ALL").names()
    called = [name.split(".")[1] for name in names if name.startswith("Tensor.")]
    assert len(called) == len(names)
    assert (
        called
        == (
            "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __div__ reciprocal __mul__ __floordiv__ __mod__ __pow__ __rpow__ "
            "__matmul__ __and__ __or__ __xor__ __lshift__ __rshift__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
            "__iadd__ __isub__ __imul__ __ipow__ __bool__ __setitem__ neg abs"
        )
        .replace("__div__", "__truediv__")
        .split()
    )


def test_scripting_tracing_and_compiling(tmp_path):
    body = """
def net(t):
    return F.relu(torch.add(t, 1.0)) + F.softmax(t, dim=0)

def same(result):
    assert torch.equal(result, expected)

expected = net(x)
debugger.start()
same(torch.jit.script(net)(x))
graph = torch.fx.symbolic_trace(net)
assert [node.target for node in graph.graph.nodes if node.op == "call_function"][:2] == [torch.add, F.relu]
same(graph(x))
same(torch.jit.trace(net, (x,), check_trace=False)(x))
debugger.stop()
debugger.step()
same(torch.jit.script(net)(x))
print("finished")
"""
    assert "finished" in capture(tmp_path, body, early=EARLY).script.stdout


def test_compiled_functions_compute_the_same(tmp_path):
    body = """
def net(t):
    return F.relu(torch.add(t, 1.0)) * 2

expected = net(x)
before = torch.compile(net, backend="eager")
assert torch.equal(before(x), expected)
debugger.start()
assert torch.equal(before(x), expected)
assert torch.equal(torch.compile(net, backend="eager")(x), expected)
debugger.stop()
assert torch.equal(before(x), expected)
print("finished")
"""
    assert "finished" in capture(tmp_path, body, early=EARLY).script.stdout


def test_modes_subclasses_and_transforms(tmp_path):
    body = """
seen = []

class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})

class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(func)
        return func(*args, **(kwargs or {}))

debugger.start()
logged = torch.ones(2).as_subclass(Logged)
seen.clear()
torch.add(logged, 1)
F.softmax(logged, dim=0)
assert seen[0] is torch.add and seen[1] is F.softmax, seen
with Mode():
    seen.clear()
    torch.mul(x, 2)
assert seen == [torch.mul], seen
with torch.device("meta"):
    assert torch.arange(3).device.type == torch.full((2,), 1).device.type == torch.ones(2).device.type == "meta"
assert torch.equal(torch.func.vmap(lambda t: torch.mul(t, 3))(x), x * 3)
assert torch.equal(torch.func.grad(lambda t: torch.mul(t, t).sum())(x), x * 2)
with torch.autocast("cpu", dtype=torch.bfloat16):
    assert F.linear(x, x).dtype == torch.bfloat16
debugger.stop()
print("finished")
"""
    assert "finished" in capture(tmp_path, body, early=EARLY).script.stdout


def test_threads_and_recursion(tmp_path):
    body = """
import threading

def work():
    for _ in range(200):
        F.softmax(torch.ones(3), dim=0)

def deep(level):
    return torch.add(deep(level - 1), 1) if level else torch.zeros(2)

def generate():
    for _ in range(3):
        yield torch.exp(torch.ones(2))

debugger.start()
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
deep(50)
list(generate())
debugger.stop()
"""
    names = capture(tmp_path, body).names()
    assert sorted(name for name in names if "softmax" in name) == sorted(
        f"Functional.softmax.{number}.forward" for number in range(800)
    )
    assert [name for name in names if "add" in name] == [f"Torch.add.{number}.forward" for number in range(50)]
    assert len([name for name in names if "exp" in name]) == 3
    assert len(names) == 853


def test_errors_of_calls_are_the_errors_of_torch(tmp_path):
    body = """
import traceback

def error_of(call):
    try:
        call()
    except Exception as error:
        files = [frame.filename.rsplit("/", 1)[-1] for frame in traceback.extract_tb(error.__traceback__)]
        return type(error), str(error), files
    raise SystemExit("no error")

calls = [lambda: torch.add(x, "no"), lambda: F.linear(x, x.T), lambda: F.softmax("no", dim=0), lambda: x.add(), lambda: F.relu(),
         lambda: F.relu(x, no_such=1), lambda: torch.relu(), lambda: torch.relu(x, x, x), lambda: x @ x]
before = [error_of(call) for call in calls]
debugger.start()
during = [error_of(call) for call in calls]
debugger.stop()
for (kind, text, files), (kind_now, text_now, files_now) in zip(before, during):
    assert (kind, text) == (kind_now, text_now), (text, text_now)
    assert [f for f in files_now if "msprobe" not in f] == files_now
print("finished")
"""
    assert "finished" in capture(tmp_path, body, early=EARLY).script.stdout


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_models_can_be_copied_and_saved_while_recording(tmp_path, level):
    body = """
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
debugger.start(model=model)
model(x).sum().backward()
other = copy.deepcopy(model)
torch.save(model.state_dict(), "state.pt")
other.load_state_dict(torch.load("state.pt"))
assert torch.equal(other(x), model(x))
debugger.stop()
debugger.step()
again = copy.deepcopy(model)
assert torch.equal(again(x), model(x))
print("finished")
"""
    assert "finished" in capture(tmp_path, body, early=EARLY, level=level).script.stdout

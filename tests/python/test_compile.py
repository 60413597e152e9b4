"""Compiled regions stay what they are: not traced anew, not broken, not recorded, and named in the summary."""

import json

from capture_helpers import capture

NET = """
import torch._dynamo
from torch._dynamo.utils import counters

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act = nn.Linear(8, 8), nn.GELU()

    def forward(self, x):
        return x + self.act(self.up(x)) + F.softmax(x, -1) * torch.relu(x)

def net():
    torch.manual_seed(3)
    return nn.Sequential(Block(), Block(), nn.Linear(8, 2))

data = torch.linspace(-2, 2, 32).reshape(4, 8)
def step(function, model):
    model.zero_grad()
    loss = function(data).pow(2).sum()
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b))

def compiled():
    return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())

out = {}
def recorded(function, model, key):
    debugger.start(model=model)
    result = step(function, model)
    debugger.stop()
    debugger.step()
    out[key] = [same(result, expected), *compiled()]
"""


def run(directory, body, early="", level="mix"):
    dump = capture(directory, body + "\nprint('OUT' + json.dumps(out))", early=NET + early, level=level, fresh=True)
    assert "Traceback" not in dump.script.stderr
    return dump, json.loads(dump.script.stdout.split("OUT")[1])


def summaries(dump):
    return [line for line in (dump.script.stderr + dump.script.stdout).splitlines() if "captured" in line]


def test_a_model_that_was_compiled_before_or_while_it_is_recorded(tmp_path):
    early = """
model, eager = net(), net()
function = torch.compile(model, backend="aot_eager", fullgraph=True)
expected = step(function, model)
out["before"] = compiled()
"""
    body = """
recorded(function, model, "warm")
recorded(function, model, "again")
out["stopped"] = [same(step(function, model), expected), *compiled()]
torch._dynamo.reset()
counters.clear()
recorded(function, model, "cold")
recorded(function, model, "cold again")
out["cold stopped"] = [same(step(function, model), expected), *compiled()]
recorded(model, model, "eager")
"""
    dump, out = run(tmp_path, body, early)
    assert out["before"] == [1, 0]
    for key in ("warm", "again", "stopped", "cold", "cold again", "cold stopped"):
        assert out[key] == [True, 1, 0], key
    for number in range(4):
        # Gradients of parameters are told by the parameters, whoever used them.
        called = [name for name in dump.names(step=number) if ".parameters_grad." not in name]
        assert not any(name.startswith(("Module", "Functional")) for name in called)
        assert "Tensor.pow.0.forward" in dump.names(step=number)
        assert "a compiled region was left alone: Sequential (1)" in summaries(dump)[number]
    # Without the compiler everything is recorded as ever.
    assert "Module.1.Block.backward.0" in dump.names(step=4)
    assert "Functional.softmax.1.forward" in dump.names(step=4)
    assert "compiled region" not in summaries(dump)[4]


def test_compiled_parts_of_a_model_keep_their_names(tmp_path):
    early = """
class Seen(nn.Module):
    # What the user hangs on a module is compiled with it.
    def __init__(self):
        super().__init__()
        self.inner, self.calls = nn.Linear(8, 8), 0
        self.inner.register_forward_pre_hook(lambda module, args, kwargs: None, with_kwargs=True)
        self.inner.register_forward_hook(lambda module, args, out: out * 2)

    def forward(self, x):
        return self.inner(x)

@torch._dynamo.disable
def alone(x):
    return F.softmax(x, -1)

@torch.compile(backend="eager")
def around(x):
    return alone(x * 3) + 1

model = nn.Sequential(torch.compile(Seen(), backend="aot_eager"), nn.Linear(8, 8))
model[1].compile(backend="aot_eager")
function = lambda x: around(model(x))
expected = step(function, model)
out["before"] = compiled()
"""
    body = """
recorded(function, model, "warm")
recorded(function, model, "again")
"""
    dump, out = run(tmp_path, body, early)
    assert out["warm"] == out["again"] == [True, *out["before"]]
    data = dump.data()
    boundary = data["Module.0.Seen.forward.0"]
    assert boundary["input_args"][0]["shape"] == boundary["output"][0]["shape"] == [4, 8]
    assert set(dump.names()) >= {"Module.0.Seen.backward.0", "Functional.softmax.0.forward"}
    assert not any("_orig_mod" in name or "OptimizedModule" in name for name in data)
    assert not any("inner" in name for name in data if ".parameters_grad." not in name)
    line = summaries(dump)[0]
    assert "a compiled region was left alone: Seen (1)" in line
    assert "a compiled region was left alone: Linear (1)" in line
    assert "a compiled region was left alone: around (1)" in line


def test_tracing_and_scripting_while_recorded(tmp_path):
    early = """
model = net()
plain = [model(data), *(f(data) for f in (F.gelu, torch.relu))]
expected = step(model, model)
class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.Tanh())), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.inner(x))
"""
    body = """
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx

def function(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(torch.relu(x), -1) + F.dropout(x, 0.5, False)

scripted = Scripted()
debugger.start(model=scripted)
out["exported"] = torch.equal(torch.export.export(model, (data,)).module()(data), plain[0])
out["symbolic"] = torch.equal(torch.fx.symbolic_trace(model)(data), plain[0])
out["traced"] = torch.equal(torch.jit.trace(model, (data,))(data), plain[0])
out["made"] = torch.equal(make_fx(model)(data)(data), plain[0])
script = torch.jit.script(function)
out["scripted"] = torch.equal(script(data), function(data))
first = scripted(data)
scripted(data).sum().backward()
debugger.stop()
debugger.step()
out["after"] = same(step(model, model), expected)
out["same"] = torch.equal(first, scripted(data))
"""
    dump, out = run(tmp_path, body, early)
    assert all(out.values()), out
    line = summaries(dump)[0]
    assert "TorchScript was left alone" in line
    assert "inner" in str(dump.script.stderr + dump.script.stdout)
    assert "Module.last.Linear.forward.1" in dump.names()
    log = (dump.directory() / "dump_error_info.log").read_text()
    assert "TorchScript was left alone: " in log

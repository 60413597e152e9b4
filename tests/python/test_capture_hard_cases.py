"""Threads, exceptions, models that change, and what other tools of PyTorch do to a model while it is recorded."""

import json

import pytest
from capture_helpers import capture

NET = """
def net(n=8):
    return nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Sequential(nn.Linear(n, n), nn.Tanh()), nn.Linear(n, 2))

def grads(model):
    return [p.grad.clone() for p in model.parameters()]

def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b))
"""


def run(directory, body, **config):
    dump = capture(directory, NET + body, **config)
    assert "Traceback" not in dump.script.stderr
    return dump


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_threads_that_train_at_once(tmp_path, level):
    body = """
import threading
models = nn.ModuleList([net(64) for _ in range(4)])
data = torch.randn(2000, 64)  # large enough for the recorder to let other threads run
def train(model):
    for _ in range(5):
        model(data).pow(2).mean().backward()
def all_at_once():
    threads = [threading.Thread(target=train, args=(m,)) for m in models]
    [t.start() for t in threads]
    [t.join() for t in threads]
for _ in range(4):
    models.zero_grad()
    debugger.start(model=models)
    all_at_once()
    debugger.stop()
    debugger.step()
with_tool = grads(models)
models.zero_grad()
all_at_once()
print("SAME", same(with_tool, grads(models)))
"""
    dump = run(tmp_path, body, level=level)
    assert "SAME True" in dump.script.stdout
    for step in range(4):
        backward = {k: v for k, v in dump.data(step=step).items() if k.startswith("Module") and ".backward." in k}
        assert len(backward) == 4 * 5 * 7
        inner = [v for k, v in backward.items() if not k.split(".")[2].startswith(("0", "Sequential"))]
        assert all(item is not None for v in inner for item in v["input"] + v["output"])


def test_threads_that_build_one_graph(tmp_path):
    body = """
import threading
model, parts = net(64), [torch.randn(300, 64) for _ in range(4)]
def step():
    model.zero_grad()
    out = [None] * 4
    def forward(i):
        out[i] = model(parts[i])
    threads = [threading.Thread(target=forward, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    sum(o.sum() for o in out).backward()
    return grads(model)
if len(sys.argv) < 2:
    debugger.start(model=model)
print("GRADS", [g.double().sum().item() for g in step()])
debugger.stop()
"""
    with_tool = run(tmp_path / "a", body, level="mix").script.stdout
    without = run(tmp_path / "b", body.replace("if len(sys.argv) < 2", "if False"), level="mix").script.stdout
    assert with_tool.split("GRADS")[1] == without.split("GRADS")[1]


def test_steps_that_end_while_other_threads_compute(tmp_path):
    body = """
import threading
model, data, ended = net(64), torch.randn(4000, 64), threading.Event()
def train():
    while not ended.is_set():
        model(data).sum().backward()
threads = [threading.Thread(target=train) for _ in range(3)]
[t.start() for t in threads]
for _ in range(30):
    debugger.start(model=model)
    model(data).sum().backward()
    debugger.stop()
    debugger.step()
ended.set()
[t.join() for t in threads]
"""
    dump = run(tmp_path, body, level="mix")
    for step in range(30):
        assert dump.data(step=step)
        assert dump.construct(step=step)


def test_an_interrupt_in_a_module(tmp_path):
    body = """
class Inner(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.up, self.error = nn.Linear(8, 8), error

    def forward(self, x):
        self.up(x)
        raise self.error()

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = Inner(ValueError), Inner(KeyboardInterrupt), nn.Linear(8, 8)

    def forward(self, x):
        for module in (self.first, self.second):
            try:
                module(x)
            except (ValueError, KeyboardInterrupt):
                pass
        return self.last(x)

model = nn.Sequential(Outer(), nn.Linear(8, 2))
debugger.start(model=model)
model(torch.randn(4, 8)).sum().backward()
debugger.stop()
"""
    construct = run(tmp_path, body, level="mix").construct()
    assert construct["Module.0.last.Linear.forward.0"] == "Module.0.Outer.forward.0"
    assert construct["Module.0.Outer.forward.0"] is None
    assert construct["Module.1.Linear.forward.0"] is None
    assert construct["Module.1.Linear.backward.0"] is None


def test_a_backward_that_raises(tmp_path):
    body = """
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in the backward")

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.bad = nn.Linear(8, 8), True

    def forward(self, x):
        x = self.up(x)
        return Bad.apply(x) + x if self.bad else x

model, data = nn.Sequential(nn.Linear(8, 8), Block(), nn.Linear(8, 8)), torch.randn(4, 8)
debugger.start(model=model)
try:
    model(data).sum().backward()
except ValueError:
    pass
model[1].bad = False
model(data).sum().backward()
debugger.stop()
"""
    dump = run(tmp_path, body, level="mix")
    assert dump.construct()["Module.2.Linear.backward.1"] is None
    assert dump.construct()["Module.1.up.Linear.backward.1"] == "Module.1.Block.backward.1"
    assert dump.data()["Module.1.Block.backward.1"]["output"][0] is not None


def test_parameters_that_are_frozen_thawed_and_exchanged(tmp_path):
    body = """
import gc, weakref
model, data = net(), torch.randn(4, 8)
model[0].requires_grad_(False)
def step():
    debugger.start(model=model)
    model(data).sum().backward()
    debugger.stop()
step()
model[0].requires_grad_(True)
old = weakref.ref(model[3].weight)
model[3].weight = nn.Parameter(torch.ones(2, 8))
model[3].bias = None
step()
model.zero_grad()
gc.collect()
print("GONE", old() is None)
"""
    dump = run(tmp_path, body, level="L0")
    data = dump.data()
    assert set(data["Module.0.Linear.parameters_grad.0"]) == {"weight", "bias"}
    assert set(data["Module.3.Linear.parameters_grad.0"]) == {"weight", "bias"}
    assert set(data["Module.3.Linear.parameters_grad.1"]) == {"weight"}
    assert "GONE True" in dump.script.stdout


def test_lists_of_models_are_hooked_once_and_models_are_let_go(tmp_path):
    body = """
import gc, weakref
a, b = net(), net()
for _ in range(3):
    debugger.start(model=[a, b])
    (a(torch.randn(4, 8)).sum() + b(torch.randn(4, 8)).sum()).backward()
    debugger.stop()
    debugger.step()
c = net()
gone = weakref.ref(a)
debugger.start(model=c)
c(torch.randn(4, 8)).sum().backward()
debugger.stop()
del a
gc.collect()
print("GONE", gone() is None)
"""
    dump = run(tmp_path, body, level="L0")
    names = [dump.names(step=step) for step in range(3)]
    assert names[0] == names[1] == names[2]
    assert not any(".forward.1" in name for name in names[2])
    assert "GONE True" in dump.script.stdout


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_compiled_models_train_to_the_same_bits(tmp_path, level):
    body = """
model, data = net(), torch.randn(4, 8)
def step():
    torch._dynamo.reset()
    model.zero_grad()
    torch.compile(model, backend="aot_eager")(data).sum().backward()
    return grads(model)
plain = step()
debugger.start(model=model)
print("SAME", same(plain, step()))
debugger.stop()
print("SAME", same(plain, step()))
"""
    dump = run(tmp_path, body, level=level)
    assert dump.script.stdout.count("SAME True") == 2


def test_a_model_that_is_saved_meanwhile(tmp_path):
    body = """
import io
model, data = net(), torch.randn(4, 8)
debugger.start(model=model)
file = io.BytesIO()
torch.save(model, file)
file.seek(0)
print("SAME", torch.equal(torch.load(file, weights_only=False)(data), model(data)))
debugger.stop()
"""
    dump = run(tmp_path, body, level="L0")
    assert "SAME True" in dump.script.stdout
    assert not any(".forward.1" in name for name in dump.names())


def test_transforms_of_functions(tmp_path):
    body = """
def loss(x):
    return F.linear(x, torch.ones(3, 3)).pow(2).sum()
debugger.start()
torch.func.vmap(torch.func.grad(loss))(torch.ones(2, 3))
debugger.stop()
debugger.step()
"""
    dump = run(tmp_path, body)
    item = dump.data()["Functional.linear.0.forward"]["input_args"][0]
    assert (item["Max"], item["Min"], item["shape"]) == (1.0, 1.0, [2, 3])
    assert not (dump.directory() / "dump_error_info.log").exists()


def test_gradients_of_a_step_are_freed(tmp_path):
    body = """
import gc, weakref
class Two(nn.Module):
    def forward(self, x):
        return x * 2, x * 3
model, data, kept = nn.Sequential(nn.Linear(8, 8), Two()), torch.randn(4, 8), []
debugger.start(model=model)
out = model(data)
def stop(grad):
    kept.append(weakref.ref(grad))
    debugger.stop()  # the module's backward never comes to its end
out[0].register_hook(stop)
(out[0].sum() + out[1].sum()).backward(retain_graph=True)
debugger.step()
gc.collect()
print(json.dumps([k() is None for k in kept]))
"""
    stdout = run(tmp_path, body, level="L0").script.stdout
    assert json.loads(stdout.strip().splitlines()[-1]) == [True]

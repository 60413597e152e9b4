"""What a module gets and gives, and the gradients of it: through this call's own arguments and results, and by nothing else.

The truth is torch's own `register_full_backward_hook`, in a run of its own, or a closed form.
"""

import json
import math

import pytest
from capture_helpers import capture

SEVERAL = "one tensor stands at several places of a module"
PAST = "a returned argument is used past its module, too"

SCRIPT = """
def norms(grads):
    return [None if g is None else g.detach().double().norm().item() for g in grads]

def truth_of(model, run):
    found, handles = {}, []
    for name, module in model.named_modules():
        if module is not model:
            def hook(m, given, received, name=name):
                found.setdefault(f"Module.{name}.{type(m).__name__}.backward.0", [norms(received), norms(given)])
            handles.append(module.register_full_backward_hook(hook))
    run(model)
    [h.remove() for h in handles]
    return found

def gradients(model):
    return [p.grad for p in model.parameters() if p.grad is not None]

def compare(model, run, truth=None):
    truth = truth_of(model, run) if truth is None else truth
    model.zero_grad()
    run(model)
    bare = gradients(model)
    model.zero_grad()
    debugger.start(model=model)
    run(model)
    debugger.stop()
    debugger.step()
    same = len(bare) == len(gradients(model)) and all(map(torch.equal, bare, gradients(model)))
    print("RESULT" + json.dumps({"same": same, "truth": truth}))

class Two(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(8, 8), inner, nn.Linear(8, 8)

    def forward(self, x):
        return self.last(self.inner(self.first(x)))

data = torch.randn(4, 8)
square = lambda model: model(data).pow(2).sum().backward()
"""


def run(directory, body, level="mix", imports=""):
    dump = capture(directory, "import json\n" + imports + SCRIPT + body, level=level)
    result = json.loads(dump.script.stdout.split("RESULT")[1])
    assert result["same"]
    return dump, result["truth"]


def close(shown, number):
    return (
        number in (None, 0.0)
        if shown is None
        else number is not None and math.isclose(shown["Norm"], number, rel_tol=1e-6)
    )


def assert_agrees(dump, truth, unknown=()):
    data = dump.data()
    for name, (received, passed) in truth.items():
        entry = data[name]
        if name in unknown:
            assert [*entry["input"], *entry["output"]] == [None] * len([*received, *passed])
            continue
        assert len(entry["input"]) == len(received), name
        assert all(map(close, entry["input"], received)), (name, entry["input"], received)
        passed = passed if len(passed) == len(entry["output"]) else [p for p in passed if p is not None]
        assert len(entry["output"]) == len(passed) and all(map(close, entry["output"], passed)), (
            name,
            entry["output"],
            passed,
        )


def skipped(dump):
    return dump.json("dump_summary.json")["skipped"]


BLOCK = """
class Block(nn.Module):
    def __init__(self, skip, order):
        super().__init__()
        self.up, self.skip, self.order = nn.Linear(8, 8), skip, order

    def forward(self, x):
        if self.order == "skip last":
            return self.up(x).relu() + self.skip(x)
        if self.order == "skip first":
            return self.skip(x) + self.up(x).relu()
        if self.order == "rebound":
            x = self.skip(x)
            return x + self.up(x) * x
        kept = x
        x = self.up(x)
        return self.skip(kept) * x + x
"""
SKIPS = {
    "identity": "nn.Identity()",
    "empty": "nn.Sequential()",
    "nested": "nn.Sequential(nn.Identity(), nn.Identity())",
    "dropout": "nn.Dropout(0.5).eval()",
}


@pytest.mark.parametrize("skip", SKIPS)
@pytest.mark.parametrize("order", ["skip last", "rebound", "kept"])
def test_a_shortcut_has_its_branch_alone(tmp_path, skip, order):
    dump, truth = run(tmp_path, BLOCK + f"compare(Two(Block({SKIPS[skip]}, {order!r})), square)\n")
    assert_agrees(dump, truth)
    assert not skipped(dump)


def test_an_argument_that_is_used_past_the_module_is_not_known(tmp_path):
    dump, truth = run(tmp_path, BLOCK + "compare(Two(Block(nn.Identity(), 'skip first')), square)\n")
    assert_agrees(dump, truth, unknown=["Module.inner.skip.Identity.backward.0"])
    assert skipped(dump)[PAST] >= 1


def test_an_argument_among_other_outputs(tmp_path):
    body = """
class Three(nn.Module):
    def forward(self, x, y):
        return x, y, x + y.sin()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.three = nn.Linear(8, 8), nn.Linear(8, 8), Three()

    def forward(self, x):
        p, q, r = self.three(self.a(x), self.b(x))
        return p.sum() + q.pow(2) + r.pow(3)

compare(Net(), square)
"""
    dump, truth = run(tmp_path, body)
    assert_agrees(dump, truth)


@pytest.mark.parametrize("of", ["x", "y"])
def test_a_loss_that_a_module_keeps(tmp_path, of):
    body = f"""
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 8)

    def forward(self, x):
        y = self.gate(x)
        self.loss = {of}.pow(2).mean()
        return y

def train(model):
    (model(data).pow(2).sum() + model.inner.loss).backward()
compare(Two(Experts()), train)
"""
    dump, truth = run(tmp_path, body)
    assert_agrees(dump, truth)


def test_a_hook_inside_the_forward(tmp_path):
    body = """
class Halved(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x):
        y = self.up(x).tanh()
        y.register_hook(lambda grad: grad * 0.5)
        return y
compare(Two(Halved()), square)
"""
    dump, truth = run(tmp_path, body)
    assert_agrees(dump, truth)


def test_a_part_of_the_forward_in_another_thread(tmp_path):
    body = """
class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        found = []
        thread = threading.Thread(target=lambda: found.append(x.pow(2) * self.v.weight.sum()))
        thread.start()
        thread.join()
        return self.w(x) + found[0]
compare(Two(Split()), square)
"""
    dump, truth = run(tmp_path, body, imports="import threading\n")
    assert_agrees(dump, truth)
    assert not skipped(dump)


def test_states_that_are_detached_in_place(tmp_path):
    """Truncated backward passes do so. Outputs that were views of ours refused it, and ended the training."""
    body = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.rnn, self.cell = nn.Linear(8, 8), nn.LSTM(8, 8), nn.LSTMCell(8, 8)

    def forward(self, x):
        y, state = self.rnn(self.first(x))
        for part in state:
            part.detach_()
        h, c = self.cell(y[0])
        c.detach_()
        return y.pow(2).sum() + self.cell(y[1], (h, c))[0].sum()

data = torch.randn(3, 4, 8)
compare(Net(), lambda model: model(data).backward(), truth={})
"""
    dump, _ = run(tmp_path, body)
    entry = dump.data()["Module.rnn.LSTM.backward.0"]
    assert entry["input"][0] is not None and entry["input"][1:] == [None, None] and entry["output"][0] is not None


def test_modules_give_the_objects_that_they_made(tmp_path):
    body = """
class Gives(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8))
        self.kept = None

    def forward(self, x):
        self.kept = (x * self.w, x + self.v)
        self.kept[0].note = "mine"
        return self.w, self.v, *self.kept

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gives = Gives()

    def forward(self, x):
        w, v, a, b = self.gives(x)
        assert w is self.gives.w and v is self.gives.v and a is self.gives.kept[0] and b is self.gives.kept[1]
        assert w.is_leaf and v.is_leaf and a._base is None and a.note == "mine"
        return (w * a + v * b).sum()

data.requires_grad_()
compare(Net(), lambda model: model(data).backward(), truth={})
"""
    dump, _ = run(tmp_path, body, level="L0")
    entry = dump.data()["Module.gives.Gives.backward.0"]
    assert all(entry["input"]) and all(entry["output"])


def test_hooks_of_the_user_have_been_applied(tmp_path):
    """Those that are registered while it records, too."""
    body = """
net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
seen = {}
def forward(module, x):
    seen["input"] = x
    return nn.functional.linear(x, module.weight, module.bias)
net[1].forward = forward.__get__(net[1])
net[1].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
net[1].register_forward_hook(lambda m, args, out: out * 3)
debugger.start(model=net)
net[1].register_forward_pre_hook(lambda m, args: (args[0] + 5,))
net[1].register_forward_hook(lambda m, args, out: out - 7)
y = net[1](net[0](data))
net[2](y).sum().backward()
debugger.stop()
debugger.step()
print("RESULT" + json.dumps({"same": True, "truth": [seen["input"].max().item(), y.max().item()]}))
"""
    dump, (given, made) = run(tmp_path, body)
    entry = dump.data()["Module.1.Linear.forward.0"]
    assert (entry["input_args"][0]["Max"], entry["output"][0]["Max"]) == (given, made)


OVERWRITES = """
class Overwrites(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple(t.clone() for t in tensors) if len(tensors) > 1 else tensors[0].clone()

    @staticmethod
    def backward(ctx, *grads):
        for grad in grads:  # as a kernel of its own does: autograd is not told
            memory = grad.detach().numpy()
            memory *= 3
        return grads if len(grads) > 1 else grads[0]
"""


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_gradients_that_a_kernel_overwrites(tmp_path, level):
    body = (
        OVERWRITES
        + """
class One(nn.Module):
    def forward(self, x):
        return Overwrites.apply(x)

class Rotary(nn.Module):
    def forward(self, q, k):
        return Overwrites.apply(q, k)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.rotary = One(), Rotary()

    def forward(self, q, k):
        q, k = self.rotary(q, k)
        return self.one(q * 1) * 5 + k * 2

# More elements than from which on values are remembered.
q, k = torch.ones(100, 100, requires_grad=True), torch.ones(100, 100, requires_grad=True)
net = Net()
debugger.start(model=net)
(net(q * 1, k * 1)).sum().backward()
debugger.stop()
debugger.step()
print("RESULT" + json.dumps({"same": True, "truth": {}}))
"""
    )
    dump, _ = run(tmp_path, body, level=level)
    data = dump.data()
    shown = [
        [item["Max"] for item in data[f"Module.{name}.backward.0"][side]]
        for name in ("one.One", "rotary.Rotary")
        for side in ("input", "output")
    ]
    assert shown == [[5.0], [15.0], [15.0, 2.0], [45.0, 6.0]]


def test_two_passes_through_one_graph(tmp_path):
    body = """
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
data.requires_grad_()
debugger.start(model=net)
out = net(data)
out.sum().backward(retain_graph=True)
(2 * out).sum().backward()
net(data).sum().backward()
debugger.stop()
debugger.step()
print("RESULT" + json.dumps({"same": True, "truth": {}}))
"""
    dump, _ = run(tmp_path, body)
    text = (dump.directory() / "dump.json").read_text()
    names = [key for key, _ in json.loads(text, object_pairs_hook=list)[-1][1]]
    assert len(names) == len(set(names)) == dump.json("dump_summary.json")["ops"]
    norms = [dump.data()[f"Module.2.Linear.backward.{i}"]["input"][0]["Norm"] for i in range(3)]
    assert norms == pytest.approx([32**0.5, 2 * 32**0.5, 32**0.5])
    functions = [name for name in names if name.startswith("Functional.relu.") and "backward" in name]
    assert functions == [f"Functional.relu.{i}.backward" for i in range(3)]


def test_a_graph_that_is_dropped_is_freed(tmp_path):
    body = """
net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Identity())
class Big(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.big = torch.empty(1000)
        seen.append(weakref.ref(ctx.big))
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad
seen = []
debugger.start(model=net)
out = net(Big.apply(data * net[0].weight.sum()))
del out
alive = seen[0]() is not None
debugger.stop()
print("RESULT" + json.dumps({"same": not alive, "truth": {}}))
"""
    run(tmp_path, body, imports="import weakref\n")

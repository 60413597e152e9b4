"""The gradients that modules receive and pass on, held against what autograd computes for the module alone."""

import json
import math

import pytest
from capture_helpers import capture

SEVERAL_PLACES = "one tensor stands at several places of a module"
SCRIPT = """
def numbers(tensor):
    # As dump.json has them.
    if tensor is None:
        return None
    wide = tensor.detach().double()
    return [list(tensor.shape), wide.max().item(), wide.min().item(), wide.mean().item(), wide.norm().item()]

def step(model, *args, loss=lambda out: out.pow(2).sum(), times=1):
    debugger.start(model=model)
    value = loss(model(*args))
    for i in range(times):
        value.backward(retain_graph=i + 1 < times)
    debugger.stop()
    debugger.step()

expected = {}
def result():
    print("RESULT" + json.dumps(expected))
"""


def run(directory, body, level="L0"):
    dump = capture(directory, SCRIPT + body + "\nresult()\n", level=level)
    return dump, json.loads(dump.script.stdout.split("RESULT")[1])


def assert_shows(items, expected):
    assert len(items) == len(expected)
    for item, numbers in zip(items, expected):
        if numbers is None:
            assert item is None
            continue
        shape, *values = numbers
        assert item["shape"] == shape
        for key, value in zip(("Max", "Min", "Mean", "Norm"), values):
            assert math.isclose(item[key], value, rel_tol=1e-6, abs_tol=1e-9), (key, item, numbers)


RESIDUAL = """
class Twice(nn.Module):
    # Uses its input twice, as a norm does.
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up = Twice(), nn.Linear(16, 16)

    def forward(self, x):
        return x + self.up(self.norm(x))

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(16, 16), Block(), Block())
data = torch.randn(32, 16)
"""


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_an_input_that_is_used_inside_and_outside(tmp_path, level):
    body = (
        RESIDUAL
        + """
step(net, data)
with_tool = [p.grad.clone() for p in net.parameters()]
net.zero_grad()
inputs = {}
def keep(module, args, out):
    inputs[module] = args[0]
handles = [m.register_forward_hook(keep) for m in net.modules()]
out = net(data)
out.pow(2).sum().backward(retain_graph=True)
expected["same"] = all(torch.equal(a, p.grad) for a, p in zip(with_tool, net.parameters()))
block = net[2]
x = inputs[block].detach().requires_grad_()
y = block.norm(x)
z = x + block.up(y)
grad_z = 2 * z.detach()
grad_y, = torch.autograd.grad(z, y, grad_z, retain_graph=True)
inner, = torch.autograd.grad(y, x, grad_y, retain_graph=True)
whole, = torch.autograd.grad(z, x, grad_z)
expected.update(grad_y=numbers(grad_y), inner=numbers(inner), whole=numbers(whole), grad_z=numbers(grad_z))
"""
    )
    dump, expected = run(tmp_path, body, level)
    assert expected["same"]
    data = dump.data()
    assert_shows(data["Module.2.norm.Twice.backward.0"]["input"], [expected["grad_y"]])
    assert_shows(data["Module.2.norm.Twice.backward.0"]["output"], [expected["inner"]])
    assert_shows(data["Module.2.Block.backward.0"]["input"], [expected["grad_z"]])
    assert_shows(data["Module.2.Block.backward.0"]["output"], [expected["whole"]])


def test_the_order_is_that_of_autograd(tmp_path):
    dump, _ = run(tmp_path, RESIDUAL + "step(net, data)\n")
    assert [name for name in dump.names() if "forward" not in name] == [
        "Module.2.up.Linear.parameters_grad.0",
        "Module.2.up.Linear.backward.0",
        "Module.2.norm.Twice.backward.0",
        "Module.2.Block.backward.0",
        "Module.1.up.Linear.parameters_grad.0",
        "Module.1.up.Linear.backward.0",
        "Module.1.norm.Twice.backward.0",
        "Module.1.Block.backward.0",
        "Module.0.Linear.backward.0",
        "Module.0.Linear.parameters_grad.0",
    ]
    construct = dump.construct()
    assert construct["Module.1.norm.Twice.backward.0"] == "Module.1.Block.backward.0"
    assert construct["Module.0.Linear.backward.0"] is None


def test_modules_get_the_tensors_they_were_given(tmp_path):
    body = """
seen = []
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.attention = nn.Linear(8, 8), Look()

    def forward(self, x):
        y = self.first(x)
        out = self.attention(y, y, y, [y])
        seen.append(y)
        return out

class Look(nn.Module):
    def forward(self, query, key, value, rest):
        seen.append((query is key is value is rest[0], query._base is None, query))
        return query * 2 + key * 3 + value.sigmoid()

net = Net()
step(net, torch.randn(4, 8))
same, no_view, inside = seen[0]
expected.update(same=same, no_view=no_view, outside=inside is seen[1])
y = seen[1].detach().requires_grad_()
z = y * 2 + y * 3 + y.sigmoid()
expected["total"] = numbers(torch.autograd.grad(z, y, 2 * z.detach())[0])
"""
    dump, expected = run(tmp_path, body)
    assert (expected["same"], expected["no_view"], expected["outside"]) == (True, True, True)
    # The same tensor at four positions: what went through each of them is not known, and the summary says so.
    assert dump.data()["Module.attention.Look.backward.0"]["output"] == [None] * 4
    assert dump.json("dump_summary.json")["skipped"] == {SEVERAL_PLACES: 4}


def test_several_outputs_show_what_came_from_outside(tmp_path):
    body = """
class Attention(nn.Module):
    def forward(self, x):
        weights = x.softmax(-1)
        return weights @ x, weights, x.mean()

class Net(nn.Module):
    def __init__(self, use):
        super().__init__()
        self.first, self.attention, self.use = nn.Linear(6, 6), Attention(), use

    def forward(self, x):
        y, weights, _ = self.attention(self.first(x))
        return (y.pow(2).sum() + 3 * weights.pow(2).sum()) if self.use else y.pow(2).sum()

data = torch.randn(6, 6)
for use in (True, False):
    net = Net(use)
    step(net, data, loss=lambda out: out)
    with_tool = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(data).backward()
    expected[f"same{use}"] = all(torch.equal(a, p.grad) for a, p in zip(with_tool, net.parameters()))
    x = net.first(data).detach()
    y, weights, _ = net.attention(x)
    expected[f"grads{use}"] = [numbers(2 * y), numbers(6 * weights) if use else None, None]
"""
    dump, expected = run(tmp_path, body)
    for number, use in enumerate((True, False)):
        assert expected[f"same{use}"]
        entry = dump.data(step=number)["Module.attention.Attention.backward.0"]
        assert_shows(entry["input"], expected[f"grads{use}"])


def test_outputs_nobody_uses_leave_parameters_without_gradient(tmp_path):
    body = """
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x), self.b(x)

net = nn.Sequential(nn.Linear(4, 4), Heads())
step(net, torch.randn(3, 4), loss=lambda out: out[0].sum())
expected["grad"] = net[1].b.weight.grad is None and net[1].a.weight.grad is not None
"""
    dump, expected = run(tmp_path, body)
    assert expected["grad"]
    assert dump.data()["Module.1.Heads.backward.0"]["input"][1] is None
    assert "Module.1.b.Linear.backward.0" not in dump.names()


def test_a_second_pass_through_a_kept_graph(tmp_path):
    dump, _ = run(tmp_path, RESIDUAL + "step(net, data, times=2)\n")
    entry = dump.data()["Module.2.Block.backward.0"]
    assert len(entry["input"]) == len(entry["output"]) == 1
    assert dump.construct()["Module.1.norm.Twice.backward.0"] == "Module.1.Block.backward.0"


def test_work_in_place_on_the_input(tmp_path):
    body = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(F.relu(self.act(self.first(x)) + 0.1, inplace=True))

net = Net()
data = torch.randn(5, 8)
step(net, data, loss=lambda out: out.sum())
a = net.first(data).detach().requires_grad_()
b = a.relu()
c = b + 0.1
net.last(c.relu()).sum().backward(inputs=[a])
grad_b, = torch.autograd.grad(net.last((b + 0.1).relu()).sum(), b)
expected.update(act_in=numbers(grad_b), act_out=numbers(a.grad))
d = (net.last.weight.sum(0).expand(5, 8))
expected.update(relu_in=numbers(d), relu_out=numbers(d * (c > 0)))
"""
    dump, expected = run(tmp_path, body, level="mix")
    data = dump.data()
    assert_shows(data["Module.act.ReLU.backward.0"]["input"], [expected["act_in"]])
    assert_shows(data["Module.act.ReLU.backward.0"]["output"], [expected["act_out"]])
    assert_shows(data["Functional.relu.1.backward"]["input"], [expected["relu_in"]])
    assert_shows(data["Functional.relu.1.backward"]["output"], [expected["relu_out"]])


def test_a_module_that_returns_its_input(tmp_path):
    body = """
net = nn.Sequential(nn.Linear(4, 4), nn.Identity(), nn.Dropout(0.0).eval(), nn.Linear(4, 4))
data = torch.randn(3, 4)
step(net, data)
x = net[0](data).detach().requires_grad_()
expected["grad"] = numbers(torch.autograd.grad(net[3](x).pow(2).sum(), x)[0])
"""
    dump, expected = run(tmp_path, body)
    for name in ("Module.1.Identity.backward.0", "Module.2.Dropout.backward.0"):
        assert_shows(dump.data()[name]["input"], [expected["grad"]])
        assert_shows(dump.data()[name]["output"], [expected["grad"]])


def test_a_module_that_returns_its_input_comes_after_the_one_that_made_it(tmp_path):
    body = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.drop = nn.Linear(4, 4), nn.Dropout(0.0)

    def forward(self, x):
        return x + self.drop.eval()(self.up(x))

net = nn.Sequential(nn.Linear(4, 4), Block(), nn.Identity())
step(net, torch.randn(3, 4))
"""
    dump, _ = run(tmp_path, body)
    construct = dump.construct()
    backward = {name: parent for name, parent in construct.items() if ".backward." in name}
    assert backward == {
        "Module.2.Identity.backward.0": None,
        "Module.1.Block.backward.0": None,
        "Module.1.drop.Dropout.backward.0": "Module.1.Block.backward.0",
        "Module.1.up.Linear.backward.0": "Module.1.Block.backward.0",
        "Module.0.Linear.backward.0": None,
    }
    assert list(backward) == [name for name in construct if ".backward." in name]


def test_parameters_whose_gradients_come_at_different_times(tmp_path):
    body = """
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.randn(2, 4, 4)), nn.Parameter(torch.randn(2, 4, 4))
        self.act = nn.SiLU()

    def forward(self, x):
        first, second = torch.bmm(x.expand(2, 3, 4), self.up).chunk(2, dim=-1)
        return torch.bmm(self.act(first) * second, self.down[:, :2])

net = nn.Sequential(nn.Linear(4, 4), Experts())
step(net, torch.randn(3, 4))
"""
    dump, _ = run(tmp_path, body)
    assert [name for name in dump.names() if "forward" not in name][:3] == [
        "Module.1.act.SiLU.backward.0",
        "Module.1.Experts.parameters_grad.0",
        "Module.1.Experts.backward.0",
    ]


def test_parameters_of_a_module_that_is_not_called(tmp_path):
    """MultiheadAttention uses the weights of its out_proj without calling it."""
    body = """
net = nn.Sequential(nn.Linear(8, 8), nn.MultiheadAttention(8, 2))
debugger.start(model=net)
x = net[0](torch.randn(3, 1, 8))
net[1](x, x, x)[0].sum().backward()
debugger.stop()
debugger.step()
"""
    dump, _ = run(tmp_path, body)
    grads = [name for name in dump.names() if ".parameters_grad." in name]
    assert grads == [
        "Module.1.out_proj.NonDynamicallyQuantizableLinear.parameters_grad.0",
        "Module.1.MultiheadAttention.parameters_grad.0",
        "Module.0.Linear.parameters_grad.0",
    ]


def test_every_module_of_a_deep_stack(tmp_path):
    body = """
net = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(400)])
step(net, torch.randn(1, 2))
"""
    dump, _ = run(tmp_path, body)
    assert len(dump.names()) == 400 * 7


MASKED = """
class Embeddings(nn.Module):
    # In a training without masks nobody uses the token.
    def __init__(self):
        super().__init__()
        self.mask, self.position = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(3, 4))
        self.up = nn.Linear(4, 4)

    def forward(self, x, masked=False):
        return self.up(x) + self.position + (self.mask if masked else 0)

net = nn.Sequential(nn.Linear(4, 4), Embeddings(), nn.Linear(4, 4))
data = torch.randn(3, 4)
"""


@pytest.mark.parametrize("times", [1, 2])
def test_parameters_that_get_no_gradient_do_not_keep_the_others_waiting(tmp_path, times):
    dump, _ = run(tmp_path, MASKED + f"step(net, data, times={times})\n")
    backward = [name for name in dump.names() if "forward" not in name]
    assert backward == [
        name
        for i in range(times)
        for name in (
            f"Module.2.Linear.parameters_grad.{i}",
            f"Module.2.Linear.backward.{i}",
            f"Module.1.Embeddings.parameters_grad.{i}",
            f"Module.1.up.Linear.parameters_grad.{i}",
            f"Module.1.up.Linear.backward.{i}",
            f"Module.1.Embeddings.backward.{i}",
            f"Module.0.Linear.backward.{i}",
            f"Module.0.Linear.parameters_grad.{i}",
        )
    ]
    assert dump.data()["Module.1.Embeddings.parameters_grad.0"].keys() == {"position"}


def test_a_pass_for_other_gradients_leaves_those_of_parameters_together(tmp_path):
    body = """
debugger.start(model=net)
x = net[0](data)
out = net[2](net[1](x, masked=True)).pow(2).sum()
torch.autograd.grad(out, x, retain_graph=True)
out.backward()
debugger.stop()
debugger.step()
"""
    dump, _ = run(tmp_path, MASKED + body)
    assert dump.data()["Module.1.Embeddings.parameters_grad.0"].keys() == {"mask", "position"}
    assert "Module.1.Embeddings.parameters_grad.1" not in dump.names()


def test_passes_that_reach_different_parameters_have_entries_of_their_own(tmp_path):
    body = """
debugger.start(model=net)
net[2](net[1](data)).sum().backward()
(net[1].mask * net[1](data)).sum().backward()
debugger.stop()
debugger.step()
"""
    dump, _ = run(tmp_path, MASKED + body)
    entries = [dump.data()[f"Module.1.Embeddings.parameters_grad.{i}"].keys() for i in range(2)]
    assert entries == [{"position"}, {"mask", "position"}]


IDENTITIES = """
class Two(nn.Module):
    # No nodes of its own, and two of the kind inside.
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Identity(), nn.Identity()

    def forward(self, x):
        return self.b(self.a(x))

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.up, self.last = Two(), nn.Linear(4, 4), nn.Identity()

    def forward(self, x):
        h = x + self.up(self.first(x))
        return self.last(h), h

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.below, self.one, self.between, self.two = nn.Linear(4, 4), Layer(), nn.Identity(), Layer()

    def forward(self, x):
        y, h = self.one(self.below(x))
        z = self.between(h)
        y, z = self.two(y + z + h.sin())
        return y + z.cos()

torch.manual_seed(2)
net, data = Net(), torch.randn(3, 4)
"""


def test_modules_without_nodes_have_the_parents_and_the_order_of_their_calls(tmp_path):
    """What they return their callers use, too, so that nothing in the graph stands for them."""
    dump, _ = run(tmp_path, IDENTITIES + "step(net, data)\n", level="mix")
    construct = dump.construct()
    parents = {name: parent for name, parent in construct.items() if name.startswith("Module.")}
    backward = {name: parent for name, parent in parents.items() if ".backward." in name}
    forward = {name: parent for name, parent in parents.items() if ".forward." in name}
    assert backward.keys() == {name.replace(".forward.", ".backward.") for name in forward}
    for name, parent in backward.items():
        above = forward[name.replace(".backward.", ".forward.")]
        assert parent == (above and above.replace(".forward.", ".backward.")), name
    assert [name for name in dump.names() if name.startswith("Module.") and ".backward." in name] == [
        f"Module.{name}.backward.0"
        for name in (
            *("two.last.Identity", "two.up.Linear", "two.first.b.Identity", "two.first.a.Identity", "two.first.Two"),
            *("two.Layer", "between.Identity"),
            *("one.last.Identity", "one.up.Linear", "one.first.b.Identity", "one.first.a.Identity", "one.first.Two"),
            *("one.Layer", "below.Linear"),
        )
    ]


CHANGED_VIEWS = """
class Block(nn.Module):
    # Of more than two dimensions the result of a linear layer is a view, and work in place is put at what lies below.
    def __init__(self, between, change, used_before):
        super().__init__()
        self.up, self.between, self.change, self.used_before = nn.Linear(4, 4), between, change, used_before
        if change == "act":
            self.act = nn.ReLU()

    def forward(self, x, inplace=True):
        y = self.between(self.up(x))
        before = y.sigmoid() if self.used_before else 0
        if self.change == "act":
            self.act.inplace = inplace
            y = self.act(y)
        elif inplace:
            y += x
        else:
            y = y + x
        return y + before

def outside(module, x):
    # The same without work in place; a view at each border tells uses within a module from others.
    kept = {}
    def split(name):
        def view(m, given, *out):
            kept.setdefault(name, []).append((out or given)[0].view_as((out or given)[0]))
            return kept[name][-1]
        return view
    for name, m in module.named_modules():
        if name:
            m.register_forward_pre_hook(split(name)), m.register_forward_hook(split(name))
    z = module(x, inplace=False)
    grads = torch.autograd.grad(z, [t for pair in kept.values() for t in pair], 2 * z.detach())
    return {n: [numbers(grads[2 * i]), numbers(grads[2 * i + 1])] for i, n in enumerate(kept)}

torch.manual_seed(4)
data = torch.randn(2, 3, 4)
"""


@pytest.mark.parametrize("change", ["act", "add"])
@pytest.mark.parametrize("between", ["nn.Identity()", "nn.LayerNorm(4)"])
@pytest.mark.parametrize("used_before", [False, True])
def test_work_in_place_on_a_view_that_a_module_returned(tmp_path, between, change, used_before):
    body = f"""
net = nn.Sequential(nn.Linear(4, 4), Block({between}, "{change}", {used_before}))
step(net, data)
same = [p.grad.clone() for p in net.parameters()]
net.zero_grad()
net(data).pow(2).sum().backward()
expected["same"] = all(torch.equal(a, p.grad) for a, p in zip(same, net.parameters()))
expected["grads"] = outside(net[1], net[0](data).detach().requires_grad_())
"""
    dump, expected = run(tmp_path, CHANGED_VIEWS + body)
    assert expected["same"]
    data = dump.data()
    entries = {name.split(".")[2]: data[name] for name in data if name.startswith("Module.1.") and ".backward." in name}
    assert entries.keys() == {*expected["grads"], "Block"}
    for name, (argument, output) in expected["grads"].items():
        assert_shows(entries[name]["input"], [output])
        assert_shows(entries[name]["output"], [argument])


def test_work_in_place_on_a_view_of_an_argument(tmp_path):
    """Those who have the argument got the change, too: what came from where nobody knows."""
    body = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.flat = nn.Linear(4, 4), nn.Flatten()

    def forward(self, x):
        h = self.up(x) * 2
        y = self.flat(h)
        y += 1
        return y.pow(2).sum() + h.sum()

step(Net(), torch.randn(2, 3, 4), loss=lambda out: out)
"""
    dump, _ = run(tmp_path, body)
    assert dump.data()["Module.flat.Flatten.backward.0"] == {"input": [None], "output": [None]}
    why = "a view of an argument is changed in place"
    assert dump.json("dump_summary.json")["skipped"] == {why: 1}

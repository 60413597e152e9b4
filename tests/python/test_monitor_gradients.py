"""Gradients of modules, against those that autograd gives where nobody but the module uses the tensor."""

import pytest
from test_monitor import HEAD

WAYS = """
from msprobe.pytorch import TrainerMon

class Block(torch.nn.Module):
    '''Uses what it is given in ways whose gradients lie differently in memory.'''

    def __init__(self, dtype):
        super().__init__()
        self.a, self.b = (torch.nn.Linear(16, 16, dtype=dtype) for _ in range(2))

    def forward(self, x, unused, weight):
        turned = (x.transpose(0, 1) * 2).transpose(0, 1)
        return self.a(x) + self.b(x) * x.mean() + turned, unused.detach() * weight, x.sum()

class Root(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.first = torch.nn.Linear(16, 16, dtype=dtype)
        self.block = Block(dtype)

    def forward(self, x):
        self.hidden = self.first(x)
        self.other = self.first(x)
        self.weight = torch.ones(4, 16, dtype=x.dtype, requires_grad=True)
        for tensor in (self.hidden, self.other, self.weight):
            if tensor.requires_grad and not tensor.is_leaf:
                tensor.retain_grad()
        out, scaled, total = self.block(self.hidden, self.other, self.weight)
        return out.square().sum() + scaled.sum() + total

torch.manual_seed(0)
dtype = getattr(torch, DTYPE)
model = Root(dtype)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
monitor = TrainerMon(config(xy_distribution=True, format="api", ops=["norm", "min", "max", "mean"], ndigits=12))
monitor.set_monitor(model, optimizer)
for _ in range(2):
    model(torch.randn(4, 16, dtype=dtype)).backward()
    rows = monitor.generate_xy_metrics()[1]
    inputs = {tag: row for tag, row in rows.items() if "block.input_" in tag}
    assert len(inputs) == 3, rows.keys()
    by_place = [next(row for tag, row in inputs.items() if f"input_{i}" in tag) for i in range(3)]
    for row, wanted in ((by_place[0], model.hidden.grad), (by_place[2], model.weight.grad)):
        wanted = wanted.double()
        tolerance = 2e-2 if DTYPE == "bfloat16" else 1e-6
        for name, value in (("norm", wanted.norm()), ("min", wanted.min()), ("max", wanted.max()), ("mean", wanted.mean())):
            assert abs(row[name] - value.item()) <= tolerance * wanted.norm().item(), (name, row, value)
    assert all(value != value for value in by_place[1].values()), by_place[1]
    optimizer.step()
    optimizer.zero_grad()
monitor.close()
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradients_that_come_on_several_ways_are_summed(run_script, tmp_path, dtype):
    done = run_script(HEAD + f"DTYPE = {dtype!r}\n" + WAYS)
    assert done.returncode == 0, done.stderr


INSIDE = """
from msprobe.pytorch import TrainerMon

class Penalty(torch.nn.Module):
    '''Differentiates a module while it runs itself.'''

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)
        self.more = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(MORE)))
        self.last = torch.nn.Linear(8, 1)

    def forward(self, x):
        hidden = self.inner(x)
        inside = torch.zeros(())
        if STEP >= FIRST:
            inside, = torch.autograd.grad(
                hidden.square().sum() + self.more(x).sum(), x, create_graph=True)
            self.wanted = (2 * hidden).detach()
        try:
            self.last(torch.ones(1, 3))
        except RuntimeError:
            pass  # a module that never ended
        return self.last(hidden).sum() + inside.square().sum()

torch.manual_seed(0)
model = Penalty()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
monitor = TrainerMon(config(xy_distribution=True, format="api", ops=["norm"], ndigits=12))
monitor.set_monitor(model, optimizer)
for STEP in range(FIRST + 3):
    x = torch.randn(4, 8, requires_grad=True)
    model(x).backward()
    if STEP < FIRST + (MORE > 1 and FIRST > 0):  # of many modules the first time may be missed, which is then said
        optimizer.step()
        continue
    rows = monitor.generate_xy_metrics()[1]
    inner = {tag: row["norm"] for tag, row in rows.items() if "inner." in tag}
    output = next(norm for tag, norm in inner.items() if "output" in tag)
    given = next(norm for tag, norm in inner.items() if "input" in tag)
    assert abs(output - model.wanted.norm().item()) < 1e-5 * output, (inner, model.wanted.norm())
    assert given == given and given > 0, inner
    last = {tag: row["norm"] for tag, row in rows.items() if "last." in tag}
    assert last and all(norm == norm for norm in last.values()), last
    optimizer.step()
    optimizer.zero_grad()
monitor.close()
"""


@pytest.mark.parametrize("first, more", [(0, 1), (0, 20), (5, 1), (5, 20)])
def test_a_backward_pass_within_the_forward_of_a_module(run_script, tmp_path, first, more):
    done = run_script(HEAD + f"FIRST, MORE = {first}, {more}\n" + INSIDE)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("began within the forward of a module") == (first > 0 and more > 1)


AGAIN = """
from torch.utils.checkpoint import checkpoint
from msprobe.pytorch import TrainerMon

class Deep(torch.nn.Module):
    def __init__(self, again):
        super().__init__()
        self.again = again
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8)) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = x + (checkpoint(layer, x, use_reentrant=False) if self.again else layer(x))
        return x

def rows_of(again):
    torch.manual_seed(0)
    model = Deep(again)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    os.environ["MONITOR_OUTPUT_DIR"] = f"again{again}"
    monitor = TrainerMon(config(xy_distribution=True, backward_only=True, format="api", ops=["norm", "min"], ndigits=12))
    monitor.set_monitor(model, optimizer, grad_acc_steps=2)
    found = []
    for _ in range(5):
        for _ in range(2):
            model(torch.randn(4, 8)).square().sum().backward()
        found.append({tag.split(":", 1)[1]: row for tag, row in monitor.generate_xy_metrics()[1].items()})
        optimizer.step()
        optimizer.zero_grad()
    monitor.close()
    return found

plain, again = rows_of(False), rows_of(True)
for step, (one, other) in enumerate(zip(plain, again)):
    values = {tag: row for tag, row in one.items() if row["norm"] == row["norm"]}
    assert len(values) >= 45, (step, len(values))
    for tag, row in values.items():
        assert tag in other and abs(other[tag]["norm"] - row["norm"]) <= 1e-6 * row["norm"], (step, tag, row, other.get(tag))
"""


def test_gradients_of_modules_that_are_computed_again(run_script, tmp_path):
    done = run_script(HEAD + AGAIN)
    assert done.returncode == 0, done.stderr
    assert "began within the forward" not in done.stderr


SEVERAL = """
from msprobe.pytorch import TrainerMon


class Two(torch.nn.Module):
    '''Two results, of which neither is made of the other.'''

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        self.made = self.a(x), self.b(x)
        self.made[0].mark = "of the user"
        return self.made

class Chain(Two):
    '''The second is made of the first.'''

    def forward(self, x):
        first = self.a(x)
        return first, self.b(first)

class Twice(Two):
    def forward(self, x):
        first = self.a(x)
        return first, first

class Leaf(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.scale, self.scale

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.two, self.chain, self.twice, self.leaf = Two(), Chain(), Twice(), Leaf()
        self.lstm, self.cell = torch.nn.LSTM(8, 8, batch_first=True), torch.nn.LSTMCell(8, 8)

    def forward(self, x, state):
        a, b = self.two(x)
        assert a is self.two.made[0] and b is self.two.made[1] and a.mark == "of the user"
        c, d = self.chain(a)
        e, f = self.twice(b)
        assert e is f
        g, scale = self.leaf(d)
        assert scale is self.leaf.scale and scale.is_leaf
        for tensor in (a, b, c, d, g):
            assert not tensor._is_view()
            tensor.retain_grad()
        self.seen = a, b, c, d, g
        out, (h, k) = self.lstm(g[:, None])
        one, two = self.cell(out[:, 0])
        total = (a * b).sum() + c.square().sum() + d.sum() + (e + 2 * f).sum() + out.sum() + one.sum() + two.sum()
        for tensor in (h, k, one, two):
            tensor.detach_()
        return total

def train(watched):
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    if watched:
        keys = dict(xy_distribution=True, all_xy=True, format="api", ops=["norm", "min", "max"], ndigits=12)
        monitor = TrainerMon(config(**keys))
        monitor.set_monitor(model, optimizer)
    for _ in range(3):
        model(torch.randn(4, 8), None).backward()
        rows = monitor.generate_xy_metrics()[1] if watched else {}
        if watched:
            found = {tag.split(":")[1]: row for tag, row in rows.items() if "output" in tag}
            for name, tensor in (("two.output_0", 0), ("two.output_1", 1), ("chain.output_1", 3), ("leaf.output_0", 4)):
                wanted = model.seen[tensor].grad.norm().item()
                assert abs(found[name]["norm"] - wanted) <= 1e-5 * wanted, (name, found[name], wanted)
            for name in ("chain.output_0", "twice.output_0", "twice.output_1", "cell.output_1"):
                assert found[name]["norm"] != found[name]["norm"], (name, found[name])
        optimizer.step()
        optimizer.zero_grad()
    if watched:
        monitor.close()
    return [p.detach().clone() for p in model.parameters()]

assert all(torch.equal(a, b) for a, b in zip(train(True), train(False)))
"""


def test_what_a_module_returns_is_what_it_made(run_script):
    """No result is exchanged: identity, leaves, attributes and detach_() are as without us, and no value says another thing."""
    done = run_script(HEAD + SEVERAL)
    assert done.returncode == 0, done.stderr
    assert "chain.output_0 has no values: the module uses this output itself" in done.stderr
    assert done.stderr.count("chain.output_0 has no values") == 1
    assert " it ends here" not in done.stderr

"""A parameter's gradient is recorded as autograd gave it, whoever uses it up, moves the parameter, or stands in its place."""

import json
import math

import pytest
from capture_helpers import capture

SCRIPT = """
import copy, hashlib
from torch.func import functional_call

expected = []  # of each step {"0.weight": Max, Min, Mean, Norm}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 4)
    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))

def numbers(gradient):
    wide = gradient.detach().double()
    return [wide.max().item(), wide.min().item(), wide.mean().item(), wide.norm().item()]

def loss_of(model, x):
    out = model(x.to(next(model.parameters()).dtype))
    return out.float().square().sum()

def data(step=0):
    return torch.randn(5, 6, generator=torch.Generator().manual_seed(10 + step))

def alone(model, step=0, loss=loss_of):
    # As it is without hooks.
    twin = copy.deepcopy(model)
    for p in twin.parameters():
        p.grad = None
    loss(twin, data(step)).backward()
    return {name: numbers(p.grad) for name, p in twin.named_parameters() if p.grad is not None}

def bits(*tensors):
    sha = hashlib.sha256()
    for t in tensors:
        sha.update(str(t.dtype).encode() + t.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()

def run(train):
    # `train(debugger)` returns tensors; without the tool they are the same to the bit.
    class Nothing:
        def start(self, **_): pass
        stop = step = lambda self: None
    plain = bits(*train(Nothing()))
    del expected[:]
    same = bits(*train(debugger)) == plain
    print("RESULT" + json.dumps({"same": same, "expected": expected}))
"""


def run(directory, body, level="L0", **config):
    dump = capture(directory, SCRIPT + body + "\nrun(train)\n", level=level, **config)
    result = json.loads(dump.script.stdout.split("RESULT")[1])
    assert result["same"]
    return dump, result["expected"]


def gradients_of(dump, step=0, number=0):
    """{"up.weight": item} of the entries of this number."""
    return {
        ".".join([*op.split(".parameters_grad.")[0].split(".")[1:-1], parameter]): items[0]
        for op, entry in dump.data(step).items()
        if op.endswith(f".parameters_grad.{number}")
        for parameter, items in entry.items()
    }


def assert_shows(shown, expected):
    assert shown.keys() == expected.keys()
    for parameter, numbers in expected.items():
        for key, number in zip(("Max", "Min", "Mean", "Norm"), numbers):
            assert math.isclose(shown[parameter][key], number, rel_tol=1e-6, abs_tol=1e-7), (parameter, key)


def no_summary(dump, step=0):
    return not (dump.directory(step) / "dump_error_info.log").exists()


IN_BACKWARD = """
def train(debugger):
    net = Net()
    opts = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}
    def update(p):
        opts[p].step()
        opts[p].zero_grad(set_to_none=SET_TO_NONE)
    def hook():
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(update)
    if FIRST:
        hook()
    for step in range(2):
        expected.append(alone(net, step))
        debugger.start(model=net)
        if step == 0 and not FIRST:
            hook()
        loss_of(net, data(step)).backward()
        debugger.stop()
        debugger.step()
    return list(net.parameters())
"""


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("to_none", [True, False])
def test_an_optimizer_within_the_backward_pass(tmp_path, first, to_none, level):
    body = f"FIRST, SET_TO_NONE = {first}, {to_none}\n" + IN_BACKWARD
    dump, expected = run(tmp_path, body, level)
    for step in (0, 1):
        assert_shows(gradients_of(dump, step), expected[step])
        assert no_summary(dump, step)


@pytest.mark.parametrize("first", [True, False])
def test_gradients_that_go_into_a_buffer(tmp_path, first):
    """As Megatron's: a hook of the accumulator, which is kept, takes the gradient away."""
    body = f"""
def train(debugger):
    net = Net()
    kept = []
    def hook():
        for p in net.parameters():
            p.main_grad = torch.zeros_like(p)
            acc = p.expand_as(p).grad_fn.next_functions[0][0]
            def take(*_, p=p):
                p.main_grad.add_(p.grad)
                p.grad = None
            acc.register_hook(take)
            kept.append(acc)
    if {first}:
        hook()
    for step in range(2):
        expected.append(alone(net, step))
        debugger.start(model=net)
        if step == 0 and not {first}:
            hook()
        loss_of(net, data(step)).backward()
        debugger.stop()
        debugger.step()
    return [p.main_grad for p in net.parameters()]
"""
    dump, expected = run(tmp_path, body)
    for step in (0, 1):
        assert_shows(gradients_of(dump, step), expected[step])


def test_hooks_of_the_user_that_change_a_gradient(tmp_path):
    """They are part of what autograd gives; a prehook of the accumulator is, too."""
    body = """
def train(debugger):
    net = Net()
    net.up.weight.register_hook(lambda g: g * 3)
    acc = net.up.bias.expand_as(net.up.bias).grad_fn.next_functions[0][0]
    acc.register_prehook(lambda g: (g[0] * 5,))
    expected.append(alone(net))
    for name, factor in (("up.weight", 3), ("up.bias", 5)):
        expected[0][name] = [number * factor for number in expected[0][name]]
    debugger.start(model=net)
    loss_of(net, data()).backward()
    debugger.stop()
    debugger.step()
    return [p.grad for p in net.parameters()]
"""
    dump, expected = run(tmp_path, body)
    assert_shows(gradients_of(dump), expected[0])


def test_accumulated_gradients_are_sums(tmp_path):
    body = """
def train(debugger):
    net = Net()
    debugger.start(model=net)
    for micro in range(2):
        loss_of(net, data(micro)).backward()
        expected.append({name: numbers(p.grad) for name, p in net.named_parameters()})
    debugger.stop()
    debugger.step()
    return [p.grad for p in net.parameters()]
"""
    dump, expected = run(tmp_path, body)
    for number in (0, 1):
        assert_shows(gradients_of(dump, number=number), expected[number])


MOVES = {
    "double": "net.double()",
    "there_and_back": "net.double(); net.float()",
    "half_and_back": "net.bfloat16(); net.float()",
    "data": "[setattr(p, 'data', p.data.clone()) for p in net.parameters()]",
    "swapped": "torch.__future__.set_swap_module_params_on_conversion(True); net.double(); net.float(); "
    "torch.__future__.set_swap_module_params_on_conversion(False)",
    "overwritten": "torch.__future__.set_overwrite_module_params_on_conversion(True); net.double(); net.float(); "
    "torch.__future__.set_overwrite_module_params_on_conversion(False)",
    "new": "net.up.weight = nn.Parameter(net.up.weight.detach() * 2)",
    "frozen": "net.up.requires_grad_(False), net.up.requires_grad_(True)",
    "meta_and_back": "state = copy.deepcopy(net.state_dict()); net.to('meta'); net.to_empty(device='cpu'); net.load_state_dict(state)",
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("within", [False, True])
def test_parameters_that_move_between_steps(tmp_path, move, within):
    """Also while recording is on."""
    body = f"""
def train(debugger):
    net = Net()
    for step in range(4):
        if {within}:
            debugger.start(model=net)
        if step == 2:
            {MOVES[move]}
        expected.append(alone(net, step))
        for p in net.parameters():
            p.grad = None
        if not {within}:
            debugger.start(model=net)
        loss_of(net, data(step)).backward()
        debugger.stop()
        debugger.step()
    return [p.grad for p in net.parameters()]
"""
    dump, expected = run(tmp_path, body)
    for step in range(4):
        assert_shows(gradients_of(dump, step), expected[step])
        assert no_summary(dump, step)


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_tensors_in_the_place_of_parameters(tmp_path, level):
    """Leaves, what is computed of the parameters, then the parameters again."""
    body = """
def train(debugger):
    net, mask = Net(), torch.full((8, 6), 0.5)
    leaves = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    out = []
    for step in range(4):
        debugger.start(model=net)
        x = data(step)
        if step == 0:
            functional_call(net, leaves, (x,)).square().sum().backward()
            expected.append({name: numbers(p.grad) for name, p in leaves.items()})
            out += [p.grad for p in leaves.values()]
        elif step < 3:
            made = {name: p * 0.5 for name, p in net.named_parameters()}
            functional_call(net, made, (x,)).square().sum().backward()
            expected.append({name: numbers(p.grad) for name, p in net.named_parameters()})
        else:
            loss_of(net, x).backward()
            expected.append({name: numbers(p.grad) for name, p in net.named_parameters()})
        out += [p.grad.clone() for p in net.parameters() if p.grad is not None]
        for p in net.parameters():
            p.grad = None
        debugger.stop()
        debugger.step()
    return out
"""
    dump, expected = run(tmp_path, body, level)
    for step in range(4):
        assert_shows(gradients_of(dump, step), expected[step])
        assert not gradients_of(dump, step, number=1)


def test_several_calls_with_tensors_of_their_own(tmp_path):
    """Both forwards before both backwards."""
    body = """
def train(debugger):
    net = Net()
    sets = [{name: (p.detach() * k).requires_grad_() for name, p in net.named_parameters()} for k in (1, 2)]
    debugger.start(model=net)
    outs = [functional_call(net, tensors, (data(),)) for tensors in sets]
    for out in outs:
        out.square().sum().backward()
    debugger.stop()
    debugger.step()
    expected.extend({name: numbers(p.grad) for name, p in tensors.items()} for tensors in sets)
    return [p.grad for tensors in sets for p in tensors.values()]
"""
    dump, expected = run(tmp_path, body)
    for number in (0, 1):
        assert_shows(gradients_of(dump, number=number), expected[number])


def test_parameters_that_are_used_past_their_modules(tmp_path):
    """MultiheadAttention does not call its out_proj; a head may use the weight of the embedding."""
    body = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.scale = nn.Parameter(torch.full((6,), 2.0))
        self.attention = nn.MultiheadAttention(6, 2)
        self.table, self.head = nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
        self.head.weight = self.table.weight
        self.left, self.right = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.right.weight = self.left.weight
    def forward(self, x):
        x = x.unsqueeze(1) * self.scale
        x = self.attention(x, x, x)[0] + self.table(torch.arange(5)).unsqueeze(1)
        return F.linear(F.linear(x, self.right.weight), self.head.weight)

def train(debugger):
    net = Model()
    expected.append(alone(net))
    debugger.start(model=net)
    loss_of(net, data()).backward()
    debugger.stop()
    debugger.step()
    return [p.grad for p in net.parameters()]
"""
    dump, expected = run(tmp_path, body)
    shown = gradients_of(dump)
    # The head was not called, the embedding, which has the same weight, was; of left and right none.
    assert_shows(shown, expected[0])
    assert "Module.Model.parameters_grad.0" in dump.names()
    assert "Module.attention.out_proj.NonDynamicallyQuantizableLinear.parameters_grad.0" in dump.names()


AWAY = """
class Whole(torch.autograd.Function):
    # Its gradient is that of the whole weight, whatever the parameter holds by then: as ZeRO's linear.
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w.detach().clone())
        return x @ w.t()
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.t() @ x

class Away(nn.Module):
    # Holds its weight only within its calls.
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i, generator=torch.Generator().manual_seed(o)))
        self.full = self.weight.data
        self.weight.data = torch.empty(0)
        self.register_forward_pre_hook(self.fetch)
        self.register_forward_hook(self.release)
    @staticmethod
    def fetch(self, args):
        self.weight.data = self.full
    @staticmethod
    def release(self, args, out):
        self.weight.data = torch.empty(0)
    def forward(self, x):
        return Whole.apply(x, self.weight)

def train(debugger):
    net = nn.Sequential(Away(6, 8), nn.Tanh(), Away(8, 4))
    taken = {}
    def take(*_, p, name):
        taken[name] = numbers(p.grad)
        net[int(name[0])].full -= 0.1 * p.grad
        p.grad = None
    nodes = []
    for step in range(3):
        debugger.start(model=net)
        out = net(data(step))
        for name, p in net.named_parameters():
            p.data = net[int(name[0])].full  # whole again when its gradient is added
            if step == 0:
                node = p.expand_as(p).grad_fn.next_functions[0][0]
                node.register_hook(lambda *_, p=p, name=name: take(p=p, name=name))
                nodes.append(node)
        out.square().sum().backward()
        for p in net.parameters():
            p.data = torch.empty(0)
        debugger.stop()
        debugger.step()
        expected.append(dict(taken))
    return [m.full for m in (net[0], net[2])]
"""


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_weights_that_are_away_while_hooks_are_put_in_place(tmp_path, level):
    dump, expected = run(tmp_path, AWAY, level)
    for step in range(3):
        assert_shows(gradients_of(dump, step), expected[step])


def test_a_model_that_nobody_needs_is_freed(tmp_path):
    body = """
import gc, weakref
def train(debugger):
    net = Net()
    debugger.start(model=net)
    loss_of(net, data()).backward()
    debugger.stop()
    debugger.step()
    out = [p.grad for p in net.parameters()]
    gone = [weakref.ref(net), weakref.ref(net.up.weight)]
    del net
    debugger.start(model=nn.Linear(1, 1))
    debugger.stop()
    debugger.step()
    gc.collect()
    expected.append([reference() is None for reference in gone])
    return out
"""
    _, expected = run(tmp_path, body)
    assert expected == [[True, True]]

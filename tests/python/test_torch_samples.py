"""The samples of torch's own tests, one of each operator and of each module, compute the same bits under capture."""

import pytest
from capture_helpers import capture

# torch's helpers import expecttest for what is not used here.
HELPERS = """
import types, unittest, warnings
warnings.simplefilter("ignore")
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)

REFUSALS = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)

def each_tensor(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from each_tensor(item)
    elif isinstance(value, dict):
        yield from each_tensor(list(value.values()))

def copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad) if value.layout == torch.strided else value
    if isinstance(value, (list, tuple)):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value

def answer(call, args, kwargs, parameters=()):
    torch.manual_seed(1)
    args, kwargs = copied(args), copied(kwargs)
    try:
        result = call(*args, **kwargs)
    except REFUSALS as error:
        return [f"{type(error).__name__}: {error}"]
    found = [t for t in each_tensor(result) if t.layout == torch.strided]
    ends = [t for t in found if t.requires_grad]
    if ends:
        try:
            sum(t.abs().double().sum() for t in ends).backward()
        except REFUSALS as error:
            return [f"{type(error).__name__}: {error}"]
    inputs = list(each_tensor([args, kwargs]))
    return [str(type(result)), *found, *inputs, *(t.grad for t in [*inputs, *parameters] if t.is_leaf and t.grad is not None)]

def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and a == b
    if a.layout != torch.strided:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())

def equal(a, b):
    return len(a) == len(b) and all(map(same, a, b))

def check(name, run):
    # What depends on where memory lies differs now and then of itself: the tool would change it every time.
    for _ in range(4):
        first, again, captured = run(False), run(False), run(True)
        if equal(first, captured) or not equal(first, again):
            return 1
    print("changed:", name)
    return 1
"""

OPERATORS = """
from torch.testing._internal.common_methods_invocations import op_db
count = 0
for op in op_db:
    if torch.float32 not in op.dtypes or "empty" in op.name:
        continue
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd):
        def run(recorded):
            if recorded:
                debugger.start()
            found = answer(op.op, (sample.input, *sample.args), sample.kwargs)
            debugger.stop()
            return found
        count += check(f"{op.name} {op.variant_test_name}", run)
        break
debugger.step()
print("checked:", count)
"""

MODULES = """
from torch.testing._internal.common_modules import module_db
count = 0
for info in module_db:
    for sample in info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=True)[:1]:
        if sample.forward_input is None:
            continue
        made, given = sample.constructor_input, sample.forward_input
        def run(recorded):
            torch.manual_seed(2)
            module = info.module_cls(*copied(made.args), **copied(made.kwargs))
            if recorded:
                debugger.start(model=nn.ModuleDict({"inner": module}))
            found = answer(module, given.args, given.kwargs, list(module.parameters()))
            debugger.stop()
            debugger.step()
            return found
        count += check(info.name, run)
print("checked:", count)
"""


@pytest.mark.parametrize(("body", "level", "least"), [(OPERATORS, "L1", 500), (MODULES, "mix", 100)])
def test_samples_compute_the_same_bits(tmp_path, body, level, least):
    said = capture(tmp_path, HELPERS + body, level=level).script.stdout.splitlines()
    assert not [line for line in said if line.startswith("changed:")]
    (checked,) = (int(line.split()[1]) for line in said if line.startswith("checked:"))
    assert checked > least

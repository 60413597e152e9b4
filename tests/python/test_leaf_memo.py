"""Within one call of a module of the framework's own a tensor's values are read once. They must be those of a recording that
reads every time: level L0 for the entries of modules, L1 for those of functions."""

import pytest
from capture_helpers import capture

BODY = """
from msprobe import _core

class Doubles(nn.Linear):  # of the user: changes its input without a trace
    def forward(self, x):
        x.data.mul_(2)
        return super().forward(x)

def triples(module, inputs):
    inputs[0].data.mul_(3)

def adds(module, inputs, output):
    output.data.add_(1)

def before_node(grads):
    grads[0].data.mul_(3)

def after_node(grad_inputs, grad_outputs):
    for grad in (*grad_inputs, *grad_outputs):
        if grad is not None:
            grad.data.add_(1)

def hooks_nodes(module, inputs, output):
    output.grad_fn.register_prehook(before_node)
    output.grad_fn.register_hook(after_node)

model = nn.Sequential(
    nn.Conv2d(4, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Conv2d(16, 16, 3, padding=1), nn.GELU(),
    nn.Flatten(2), nn.Linear(1024, 128), nn.LayerNorm(128), Doubles(128, 128), nn.Dropout(0.5, inplace=True), nn.Linear(128, 128),
    nn.Linear(128, 128), nn.Linear(128, 128), nn.Linear(128, 128), nn.Softmax(-1), nn.Embedding(3, 3),
)[:-1]
crowded, replaced, late, after = model[10], model[11], model[12], model[13]
crowded.register_forward_pre_hook(triples)
plain = replaced.forward
def forward(x):
    x.data.neg_()
    return plain(x)
replaced.forward = forward
after.register_forward_hook(adds)
model[6].register_forward_hook(hooks_nodes)
model[3].register_forward_hook(hooks_nodes)
x = torch.randn(8, 4, 32, 32)
debugger.start(model=model)
late.register_forward_pre_hook(triples)
loss = model(x).pow(2).sum()
loss.backward(retain_graph=True)
loss.backward(torch.tensor(2.0))
debugger.stop()
debugger.step()
print("HITS", _core.leaf_memo_hits())
"""


def without_buffers(value):
    """Names of buffers come from the modules around a function, which level L1 does not see."""
    if isinstance(value, dict):
        return {k: without_buffers(v) for k, v in value.items() if k != "buffer"}
    return [without_buffers(v) for v in value] if isinstance(value, list) else value


def values(dump, kind):
    """Module entries by name, those of functions likewise."""
    return {k: without_buffers(v) for k, v in dump.data().items() if k.startswith("Module") == kind}


@pytest.mark.parametrize("content", ["statistics", "md5", "xor"])
def test_values_are_those_of_every_read(tmp_path, content):
    section = {"summary_mode": content}
    mix = capture(tmp_path / "mix", BODY, level="mix", section=section)
    modules = capture(tmp_path / "L0", BODY, level="L0", section=section)
    functions = capture(tmp_path / "L1", BODY, level="L1", section=section)
    hits = [int(d.script.stdout.split("HITS")[1]) for d in (mix, modules, functions)]
    # Forward: input, output and weight of five modules, input and output of five; the others have code of the user in them.
    # Backward, twice: gradients of the input of those without hooks of the user at their nodes. Gradients of the output are
    # read before the node and behind it: it may have written into them.
    assert hits[0] >= 24 and hits[1:] == [0, 0]
    assert values(mix, True) == values(modules, True)
    assert values(mix, False) == values(functions, False)
    assert len(values(mix, True)) > 30 and len(values(mix, False)) > 25


def test_hooks_of_all_modules_close_it(tmp_path):
    body = "handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: None)\n" + BODY
    dump = capture(tmp_path, body, level="mix")
    everywhere = capture(tmp_path / "without", BODY, level="mix")
    hits = [int(d.script.stdout.split("HITS")[1]) for d in (dump, everywhere)]
    assert 0 < hits[0] < hits[1] - 10  # those of backward

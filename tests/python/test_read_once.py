"""Memory that stands at several places of one hook is read once, and what only looks the same is read again."""

from capture_helpers import capture

BODY = """
import dataclasses

@dataclasses.dataclass
class Pair:  # its members are made when they are asked for, one where the other was
    seed: int
    low: object = None
    high: object = None
    def __getattribute__(self, name):
        if name in ("low", "high"):
            return torch.full((256, 256), 1.0 if name == "low" else 2.0)
        return object.__getattribute__(self, name)

class Takes(nn.Module):
    def forward(self, x, pair):
        return x * 2

class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.takes, self.l = Takes(), nn.Linear(128, 128)
    def forward(self, x):
        y = self.takes(x, Pair(1))
        return self.l(y) + y.double().float() + y.view(-1).sin().view(64, 128)

model = Parts()
x = torch.randn(64, 128, requires_grad=True)
grown = torch.ones(64, 128)
debugger.start(model=model)
model(x).square().sum().backward()
grown.addcmul_(x.detach(), x.detach(), value=3)
torch.add(grown, grown.t().reshape(64, 128))
debugger.stop()
debugger.step()
print("RIGHT", float(x.max()), float(grown.max()), float(x.grad.max()))
"""


def test_each_value_is_its_own(tmp_path):
    dump = capture(tmp_path, BODY, level="mix", section={"summary_mode": "md5"})
    data = dump.data()
    most, grown, gradient = (float(f) for f in dump.script.stdout.split("RIGHT")[1].split())
    pair = data["Module.takes.Takes.forward.0"]["input_args"][1]
    assert [pair[name]["Max"] for name in ("low", "high")] == [1.0, 2.0]
    call = data["Tensor.addcmul_.0.forward"]
    before, *factors = call["input_args"]
    assert before["Max"] == 1.0 and [f["Max"] for f in factors] == [most, most]
    assert call["output"][0]["Max"] == grown
    same, turned = data["Torch.add.0.forward"]["input_args"]
    assert same["Max"] == turned["Max"] and same["md5"] != turned["md5"]
    # Of three ways that lead to it, added up in the order in which they come.
    assert data["Module.takes.Takes.backward.0"]["output"][0]["Max"] == gradient


HOOKS = """
from torch.autograd.function import _HookMixin
own = _HookMixin._register_hook.__code__
told = []
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
x = torch.randn(2, 4, requires_grad=True)
debugger.start(model=model)
y = model(x)
node = y.grad_fn
first = node.register_hook(lambda given, got: told.append("first"))
gone = node.register_hook(lambda given, got: told.append("gone"))
before = node.register_prehook(lambda got: told.append("before"))
doubles = node.register_prehook(lambda got: tuple(g * 2 for g in got))
gone.remove()
y.sum().backward()
debugger.stop()
debugger.step()
print("TOLD", told, type(first).__name__, _HookMixin._register_hook.__code__ is own)
"""


def test_hooks_of_the_user_at_nodes_are_as_without(tmp_path):
    dump = capture(tmp_path, HOOKS, level="mix")
    assert "TOLD ['before', 'first'] RemovableHandle True" in dump.script.stdout
    gradients = dump.data()["Module.1.Linear.backward.0"]
    assert gradients["input"][0]["Max"] == 1.0  # hooks of others come behind ours
    assert gradients["output"][0]["shape"] == [2, 4]

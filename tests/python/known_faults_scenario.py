"""Does what earlier tools have failed at, in one process, and prints what came of each as JSON. Runs under any tool."""

import gc
import json
import sys
import threading
from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.functional import gelu
from torch.utils.data import DataLoader

EARLY = {"gelu": F.gelu, "silu": F.silu, "relu": torch.relu}
Pair = namedtuple("Pair", "first second")
RESULT = {}


class Custom:
    """A class of the user whose objects are arguments."""


def scenario(function):
    """Runs it on a thread of its own: what breaks in one must not spoil the next."""

    def run():
        RESULT[function.__name__] = function()

    def failed(arguments):
        RESULT[function.__name__] = f"{arguments.exc_type.__name__}: {arguments.exc_value}"

    threading.excepthook = failed
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def look(value, other=None, **more):
    return torch.ones(2)


class Returns(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        return Pair(y, y * 2)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3)

    def forward(self, x):
        y = self.up(x)
        y.mul_(2.0)
        y = self.act(y)
        z = y.clone().t().as_strided((3, 2), (1, 3))
        z += 1
        return torch.matmul(self.down(z.t()), self.up.weight)


def sparse_operands():
    return torch.mm(torch.eye(3).to_sparse(), torch.ones(3, 3)).sum().item()


def ops_after_a_sparse_operand():
    try:
        torch.add(torch.eye(3).to_sparse(), torch.eye(3).to_sparse())
    except RuntimeError:
        pass
    return torch.tanh(torch.ones(3)).shape[0]


def arguments_that_contain_themselves():
    endless = [1]
    endless.append(endless)
    return look(endless).sum().item()


def dtype_by_position():
    return str(F.softmax(torch.ones(2, 2), -1, 3, torch.float64).dtype)


def values_of_other_types():
    return look(1 + 2j, other={1, 2}, custom=Custom()).sum().item()


def integers_and_doubles():
    return (
        torch.cumsum(torch.arange(4), 0).sum().item() + torch.cumsum(torch.ones(4, dtype=torch.float64), 0).sum().item()
    )


def functions_stay_themselves():
    same = F.gelu is EARLY["gelu"] and F.silu is EARLY["silu"] and torch.relu is EARLY["relu"]
    if gelu != F.gelu:
        raise ValueError("Only support fusion of gelu and swiglu")
    if F.gelu not in (EARLY["gelu"],) or not isinstance(torch.relu, type(EARLY["relu"])):
        raise AssertionError("activation_func must be F.gelu")
    return same


def earlier_references_are_recorded():
    return EARLY["silu"](torch.ones(2)).shape[0]


def indexing_and_length():
    x = torch.arange(6.0).reshape(2, 3)
    errors = []
    for wrong in (lambda: x[0, 0, 0], lambda: len(torch.tensor(1.0)), lambda: torch.tensor(1.0)[0]):
        try:
            wrong()
        except (IndexError, TypeError) as error:
            errors.append(type(error).__name__)
    return [x[0].sum().item(), x[..., 1].tolist(), len(x), [row.sum().item() for row in x], errors]


def garbage_collection_is_left_alone():
    gc.disable()
    F.softmax(torch.ones(2), -1)
    F.layer_norm(torch.ones(2, 2), (2,))
    off = not gc.isenabled()
    gc.enable()
    F.softmax(torch.ones(2), -1)
    return off and gc.isenabled()


def named_tuples_stay():
    out = model.returns(torch.ones(2, 3))
    (out.first.sum() + out.second.sum()).backward()
    return type(out).__name__


def in_place_on_views():
    model.inplace(torch.ones(2, 3)).sum().backward()
    grads = [p.grad.sum().item() for p in model.inplace.parameters()]
    return grads


def batches_of_workers():
    loader = DataLoader(torch.arange(6.0).reshape(6, 1), batch_size=2, num_workers=1, timeout=60)
    return [torch.exp(batch).sum().item() > 0 for batch in loader]


def compiled_regions():
    return torch.compile(lambda x: torch.sin(x) + 1, backend="eager")(torch.zeros(3)).sum().item()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.returns, self.inplace = Returns(), InPlace()


torch.set_num_threads(1)
torch.manual_seed(0)
model = Model()
debugger = None
if len(sys.argv) > 1:
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=sys.argv[1])
    debugger.register_custom_api(sys.modules[__name__], "look", "Custom")
    debugger.start(model=model)
for function in (
    dtype_by_position,
    values_of_other_types,
    integers_and_doubles,
    functions_stay_themselves,
    earlier_references_are_recorded,
    indexing_and_length,
    garbage_collection_is_left_alone,
    named_tuples_stay,
    in_place_on_views,
    batches_of_workers,
    compiled_regions,
    arguments_that_contain_themselves,
    sparse_operands,
    ops_after_a_sparse_operand,
):
    # An earlier tool may record nothing after a fault of its own: such scenarios are also asked for by themselves.
    if not sys.argv[2:] or function.__name__ in sys.argv[2:]:
        scenario(function)
if debugger:
    debugger.stop()
print("RESULT" + json.dumps(RESULT))

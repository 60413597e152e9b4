"""What a rank of msprobe parity records: places, weights that are given, dropouts by module, and the guard around it all."""

import sys
import types

import pytest

torch = pytest.importorskip("torch")
from msprobe._attach.parity import weights  # noqa: E402
from msprobe._attach.parity.client import Parity  # noqa: E402
from msprobe._attach.parity.dropout import Dropouts  # noqa: E402
from msprobe._attach.parity.places import Names, parameter_place, promised_replicas  # noqa: E402
from msprobe._attach.parity.record import Record  # noqa: E402


@pytest.mark.parametrize("dim", [None, -1, 1])
def test_a_parameter_that_says_it_is_split_and_not_where(monkeypatch, dim):
    state = types.SimpleNamespace(
        model_parallel_is_initialized=lambda: True,
        get_tensor_model_parallel_world_size=lambda: 2,
        get_tensor_model_parallel_rank=lambda: 1,
    )
    monkeypatch.setitem(sys.modules, "megatron.core.parallel_state", state)
    norm = torch.nn.LayerNorm(4)
    norm.weight.tensor_model_parallel = True
    if dim is not None:
        norm.weight.partition_dim = dim
    assert parameter_place(norm, "norm.weight", norm.weight, False) == {"unknown": "tp"}
    norm.weight.partition_dim = 0
    assert parameter_place(norm, "norm.weight", norm.weight, False)["boxes"] == [[[4], [4]]]


def test_what_fails_in_a_hook_is_noted_and_the_training_goes_on():
    client = object.__new__(Parity)
    client._lost = set()

    def look(value):
        return value.no_such_attribute

    assert client.shielded(look)(1) is None
    client.unseen(lambda: look(1))
    assert client._lost == {"look", "lambda"}
    assert client.shielded(lambda value: value)(3) == 3


class Stage(torch.nn.Module):
    def __init__(self, *numbers):
        super().__init__()
        self.layers = torch.nn.ModuleDict({str(number): torch.nn.Linear(4, 4) for number in numbers})
        for layer in self.layers.values():
            torch.nn.init.zeros_(layer.bias)


def record(directory, rank, model):
    one = Record(str(directory / f"rank{rank}"))
    for name, parameter in model.named_parameters():
        one.add("parameter", 0, name, parameter)
    one.write({"rank": rank, "world": 2, "axes": {"pp": [0, 1]}})


def test_weights_are_given_to_the_stage_that_began_otherwise(tmp_path):
    whole = Stage(0, 1, 2, 3)
    first, second = Stage(0, 1), Stage(2, 3)
    first.load_state_dict({name: value for name, value in whole.state_dict().items() if name[7] in "01"})
    with torch.no_grad():
        first.layers["1"].weight[0, 0] += 1  # one of two of the first stage: a fault that must stay
    for rank, stage in enumerate((first, second)):
        record(tmp_path, rank, stage)
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    noted = types.SimpleNamespace(fact=lambda step, name, value: facts.append(value), note=lambda *_: None)
    facts = []
    weights.give_weights(str(tmp_path), [whole], Names([whole]), noted)
    assert facts == ["given"]
    for name, value in whole.state_dict().items():
        assert torch.equal(value, before[name] if name[7] in "01" else second.state_dict()[name]), name


def test_what_is_dropped_has_the_name_of_the_module():
    added = []
    client = types.SimpleNamespace(
        records=True, unseen=lambda look: look(), add=lambda phase, name, *_: added.append((phase, name))
    )
    dropouts = Dropouts(client)
    for name in ("block", "block.drop"):
        dropouts.entered(name, None, ())
    dropouts._look(torch.ones(2), 0.5, torch.ones(2) != 0)
    dropouts.entered("block.raised", None, ())  # and was never left
    dropouts.left("block.drop")
    dropouts._look(torch.ones(2), 0.5, torch.ones(2) != 0)
    dropouts._look(torch.ones(2), 0.5, torch.ones(2) != 0)
    assert [name for phase, name in added if phase == "dropout"] == ["block.drop#0", "block#0", "block#1"]


def test_experts_are_no_replicas_of_a_wrapper():
    kind = type("DistributedDataParallel", (torch.nn.Module,), {"__module__": "megatron.core.distributed"})
    wrapper = kind()
    wrapper.module = torch.nn.Linear(2, 2)
    wrapper.module.bias.allreduce = False
    assert promised_replicas(wrapper) == {id(wrapper.module.weight)}

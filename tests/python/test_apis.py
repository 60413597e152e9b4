"""The list of recorded functions: its rules, the user's changes to it, and its equality with the earlier tool's."""

import json
import time
import types

import pytest
import torch
import torch.distributed
from launch import PACKAGE_ROOT, run_python
from msprobe.pytorch.apis import Api, hooked_apis, missing_extra, risk_of


def by_name(apis):
    return {f"{api.prefix}.{api.name}": api for api in apis}


@pytest.fixture(scope="module")
def apis():
    return hooked_apis(torch)


def test_every_entry_names_a_callable_of_its_owner(apis):
    assert len(apis) > 1000
    for api in apis:
        assert callable(getattr(api.owner, api.attr)), api
        assert api.attr.endswith(api.name), api
        assert api.risk in ("CORE", "FOCUS", "LOW"), api


def test_each_function_object_occurs_once(apis):
    objects = [id(getattr(api.owner, api.attr)) for api in apis]
    assert len(objects) == len(set(objects))


@pytest.mark.parametrize(
    "name, owner",
    [
        ("Functional.gelu", torch.nn.functional),
        ("Functional.conv2d", torch.nn.functional),  # torch.conv2d is the same object
        ("Functional.softmax", torch.nn.functional),
        ("Tensor.__add__", torch.Tensor),
        ("Tensor.__setitem__", torch.Tensor),
        ("Tensor.permute", torch.Tensor),
        ("Torch.bmm", torch),
        ("Torch.einsum", torch),
        ("Torch._foreach_norm", torch),
        ("Torch.vector_norm", torch.linalg),
        ("VF.lstm", torch._VF),
        ("Distributed.all_reduce", torch.distributed),
    ],
)
def test_functions_that_compute_are_recorded(apis, name, owner):
    assert by_name(apis)[name].owner is owner


@pytest.mark.parametrize(
    "name",
    [
        "Tensor.__getitem__",
        "Tensor.view",
        "Tensor.size",
        "Tensor.is_contiguous",
        "Tensor.new_zeros",
        "Tensor.detach",
        "Tensor.backward",
        "Tensor.__neg__",
        "Torch.zeros",
        "Torch.randn",
        "Torch.is_tensor",
        "Torch.manual_seed",
        "Functional.has_torch_function",
        "Distributed.get_rank",
        "Distributed.all_gather_object",
    ],
)
def test_questions_constructors_and_plumbing_are_not_recorded(apis, name):
    assert name not in by_name(apis)


def test_linalg_functions_keep_the_prefix_of_torch(apis):
    owners = [api.owner for api in apis if (api.prefix, api.name) == ("Torch", "matmul")]
    assert owners == [torch, torch.linalg]


def test_a_function_that_shares_its_object_with_an_unrecorded_operator_says_so(apis):
    assert {api.name for api in apis if not api.in_place} == {"abs", "neg"}
    for name in ("abs", "neg"):
        assert getattr(torch.Tensor, name) is getattr(torch.Tensor, f"__{name}__")


@pytest.mark.parametrize(
    "prefix, name, risk",
    [
        ("Functional", "linear", "CORE"),
        ("Torch", "matmul", "CORE"),
        ("Functional", "conv_transpose2d", "CORE"),
        ("Torch", "batch_norm_stats", "CORE"),
        ("Distributed", "all_reduce", "CORE"),
        ("Functional", "gelu", "FOCUS"),
        ("Tensor", "mul_", "FOCUS"),
        ("Tensor", "squeeze_", "FOCUS"),
        ("Tensor", "clamp", "FOCUS"),
        ("Torch", "clamp", "FOCUS"),
        ("Tensor", "reshape", "LOW"),
        ("Tensor", "float", "LOW"),
        ("Torch", "cat", "LOW"),
        ("Torch", "arange", "LOW"),
    ],
)
def test_risk(prefix, name, risk):
    assert risk_of(prefix, name) == risk


def test_the_user_adds_functions():
    extra = {"torch.Tensor": ["__getitem__"], "operator": "floordiv".split(), "torch.nn.functional": ["rms_norm"]}
    added = by_name(hooked_apis(torch, extra))
    assert added["Tensor.__getitem__"].owner is torch.Tensor
    assert added["operator.floordiv"].attr == "floordiv"
    assert "Functional.rms_norm" in added


def test_names_the_user_added_in_vain_are_reported(apis):
    extra = {"torch.Tensor": ["__getitem__", "no_such"], "no_such_module.inner": ["f"], "torch.no_such": ["g"]}
    assert missing_extra(torch, extra) == ["torch.Tensor.no_such", "no_such_module.inner.f", "torch.no_such.g"]
    assert len(hooked_apis(torch, extra)) == len(apis) + 1


def test_the_user_leaves_functions_out(apis):
    left = by_name(hooked_apis(torch, leave_out=["Functional.gelu", "relu", "Torch.conv2d"]))
    assert set(by_name(apis)) - set(left) == {"Functional.gelu", "Functional.relu", "Tensor.relu", "Torch.relu"}


def test_names_of_other_versions_are_skipped():
    """A torch without most functions: what is there is listed, nothing fails."""
    functional = types.ModuleType("torch.nn.functional")
    functional.relu = torch.nn.functional.relu
    small = types.SimpleNamespace(
        nn=types.SimpleNamespace(functional=functional),
        Tensor=type("Tensor", (), {"add": torch.Tensor.add}),
        _VF=types.SimpleNamespace(),
        linalg=types.ModuleType("linalg"),
        distributed=types.SimpleNamespace(is_available=lambda: False),
        add=torch.add,
    )
    listed = [api[:2] for api in hooked_apis(small) if not api.name.startswith("__")]
    assert listed == [("Functional", "relu"), ("Tensor", "add"), ("Torch", "add")]


def processor_seconds(work):
    times = []
    for _ in range(5):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def test_listing_is_no_more_than_some_looks_at_each_name():
    """A few milliseconds; on a slow machine a look takes as much longer."""
    owners = (torch, torch.Tensor, torch.nn.functional, torch.linalg)
    look = processor_seconds(lambda: [getattr(owner, name, None) for owner in owners for name in dir(owner)])
    assert processor_seconds(lambda: hooked_apis(torch)) < 25 * look


LIST_BOTH = """
import importlib.util, json, sys
import torch, torch.distributed
spec = importlib.util.spec_from_file_location("apis", sys.argv[1])
apis = importlib.util.module_from_spec(spec)
sys.modules["apis"] = apis
spec.loader.exec_module(apis)
from msprobe.core.dump.api_dump.api_registry import ApiWrapper
from msprobe.pytorch.dump.api_dump import api_register
from msprobe.pytorch.dump.api_dump.api_risk_level import get_api_risk_level
groups = {"functional": "Functional", "tensor": "Tensor", "torch": "Torch", "_VF": "VF", "distributed": "Distributed"}
names = ApiWrapper(api_register._api_types, api_register._supported_api_list_path).api_names["pytorch"]
old = {f"{groups[g]}.{n}": get_api_risk_level(n.split(".")[-1]) for g, ns in names.items() if g in groups for n in ns}
def spell(api):
    return f"{api.prefix}.{'linalg.' if api.owner is torch.linalg else ''}{api.attr}"
new = {spell(api): api.risk for api in apis.hooked_apis(torch)}
objects = {id(getattr(api.owner, api.attr)) for api in apis.hooked_apis(torch)}
aliases = [n for n in old if n.startswith("Torch.") and n.count(".") == 1 and id(getattr(torch, n[6:])) in objects]
print("RESULT" + json.dumps([old, new, aliases]))
"""


def test_the_same_functions_as_the_earlier_tool(old_python, tmp_path):
    source = PACKAGE_ROOT / "msprobe" / "pytorch" / "apis.py"
    script = tmp_path / "list_both.py"
    script.write_text(LIST_BOTH)
    output = run_python([script, source], python=old_python, ours=False, cwd=tmp_path).stdout
    old, new, aliases = json.loads(output.split("RESULT")[1])
    assert len(old) > 1000
    # Those of newer releases, which its list does not know.
    assert set(new) - set(old) <= {"Distributed.all_gather_single", "Distributed.reduce_scatter_single"}
    # One object under two names keeps the first; the two operators are one object with an unrecorded one.
    missing = set(old) - set(new)
    assert missing - set(aliases) == {"Tensor.__rdiv__", "Tensor.__idiv__"}
    assert {name.split(".")[-1] for name in missing & set(aliases)} <= set(
        "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
        "conv_transpose2d conv_transpose3d cosine_similarity hardshrink lstm pairwise_distance pdist pixel_shuffle "
        "pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_".split()
    )
    different = {name: (old[name], new[name]) for name in new if name in old and new[name] != old[name]}
    # A missing comma in the earlier tool's list lost these two.
    corrected = {"Functional.linear": ("FOCUS", "CORE"), "Torch.chain_matmul": ("FOCUS", "CORE")}
    only_dotted = {name: ("FOCUS", "CORE") for name in ("Torch.linalg.multi_dot", "Torch.linalg.vecdot")}
    as_in_place = {name: ("LOW", "FOCUS") for name in ("Tensor.clamp", "Torch.clamp")}
    assert different == {**corrected, **only_dotted, **as_in_place}


def test_api_is_a_plain_tuple():
    assert Api("Torch", "add", torch, "add", "FOCUS") == ("Torch", "add", torch, "add", "FOCUS", True)

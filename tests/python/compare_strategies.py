"""Hypothesis strategies for pairs of dumps of one program: modules and functions, forward, backward, gradients, on one side or both."""

import copy
import json

import numpy
from hypothesis import strategies as st

# What the earlier tool gets wrong is not drawn: infinities beside text, values it calls malicious, one name twice.
finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: float(f"{v:.6g}"))
special = st.sampled_from([0.0, 1.0, float("nan"), float("inf"), float("-inf")])
statistic = st.one_of(finite, special, st.none())
DTYPES = ["torch.float32", "torch.float16", "torch.bfloat16", "torch.float64", "torch.int64", "torch.bool"]
SHAPES = [[], [2], [2, 3], [1, 4], [0]]
CHECKSUMS = ["0a0b0c0d", "11111111", "ffeeddcc"]
APIS = ["Functional.linear", "Torch.add", "Tensor.mul", "Tensor.__getitem__", "Distributed.all_reduce", "Tensor.to"]
MODULES = ["Module.m.fc.Linear", "Module.m.layers.0.Layer", "Module.m.Model"]


@st.composite
def tensors(draw, md5):
    item = {"type": "torch.Tensor", "dtype": draw(st.sampled_from(DTYPES)), "shape": draw(st.sampled_from(SHAPES))}
    item.update({key: draw(statistic) for key in ("Max", "Min", "Mean", "Norm")})
    item["requires_grad"] = draw(st.booleans())
    if md5:
        item["md5"] = draw(st.sampled_from(CHECKSUMS))
    return item


scalars = st.one_of(
    st.integers(-5, 5).map(lambda v: {"type": "int", "value": v}),
    finite.map(lambda v: {"type": "float", "value": v}),
    st.booleans().map(lambda v: {"type": "bool", "value": v}),
    st.sampled_from(["mean", "sum", "npu:0", "cpu"]).map(lambda v: {"type": "str", "value": v}),
    st.sampled_from([[0, 1, None], [1, 5, 2]]).map(lambda v: {"type": "slice", "value": v}),
    st.sampled_from([[1, 2], [3]]).map(lambda v: {"type": "torch.Size", "value": v}),
    st.sampled_from([[0, 1], [2, 3]]).map(lambda v: {"type": "torch.ProcessGroup", "group_ranks": v, "group_id": "a"}),
    st.just({"type": "ellipsis", "value": "..."}),
    st.none(),
)


def items(md5):
    leaf = st.one_of(tensors(md5), tensors(md5), scalars)
    nested = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["k", "v", "past"]), inner, max_size=2)
        ),
        max_leaves=4,
    )
    return st.one_of(leaf, leaf, nested)


def contents(draw, name, md5):
    """What dump.json holds of an op of this name."""
    if ".parameters_grad" in name:
        return {key: [draw(tensors(md5))] for key in draw(st.lists(st.sampled_from(["weight", "bias"]), unique=True))}
    if ".to." in name:  # of ops on the list of the ignored the earlier tool judges those without inputs all the same
        return {"input_args": [draw(tensors(md5))], "input_kwargs": {}, "output": [draw(tensors(md5))]}
    results = st.lists(st.one_of(tensors(md5), tensors(md5), st.none()), min_size=1, max_size=2)
    if ".backward" in name:
        return {"input": draw(results), "output": draw(results)}
    op = {"input_args": draw(st.lists(items(md5), max_size=3))}
    op["input_kwargs"] = draw(
        st.dictionaries(st.sampled_from(["dim", "alpha", "src"]), st.one_of(scalars, tensors(md5)), max_size=2)
    )
    op["output"] = draw(st.lists(items(md5), min_size=1, max_size=2))
    if name.startswith("Module."):
        op["parameters"] = draw(st.dictionaries(st.sampled_from(["weight", "bias"]), tensors(md5), max_size=2))
    return op


def changed(draw, value, md5):
    """The golden run's copy: leaves are other here and there, in value, dtype, shape or kind."""
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        how = draw(st.sampled_from(["same"] * 5 + ["value", "dtype", "other"]))
        if how == "same":
            return value
        if how == "other" or "dtype" not in value:
            return draw(st.one_of(tensors(md5), scalars))
        other = draw(tensors(md5))
        keep = ("shape", "dtype", "requires_grad") if how == "value" else ("shape",)
        return {**other, **{key: value[key] for key in keep}}
    if isinstance(value, dict):
        return {key: changed(draw, inner, md5) for key, inner in value.items()}
    if isinstance(value, list):
        kept = [changed(draw, inner, md5) for inner in value]
        return kept[: len(kept) - draw(st.sampled_from([0, 0, 0, 0, 1]))]
    return value


@st.composite
def names_of_calls(draw):
    """The ops of a step in order: calls of functions and modules, their backward calls, gradients of parameters."""
    bases = draw(st.lists(st.sampled_from(APIS + MODULES), min_size=1, max_size=4))
    calls, forward, backward = {}, [], []
    for base in bases:
        n = calls[base] = calls.get(base, -1) + 1
        module = base.startswith("Module.")
        forward.append(f"{base}.forward.{n}" if module else f"{base}.{n}.forward")
        if draw(st.booleans()):
            backward.append(f"{base}.backward.{n}" if module else f"{base}.{n}.backward")
            if module and n == 0 and draw(st.booleans()):
                backward.append(f"{base}.parameters_grad" + draw(st.sampled_from(["", ".0"])))
    return forward + backward[::-1]


@st.composite
def pairs_of_dumps(draw, md5=False, one_sided=True):
    """Two dumps of one program: most ops in both, most items equal."""
    target, golden = {}, {}
    for name in draw(names_of_calls()):
        op = contents(draw, name, md5)
        where = draw(st.integers(0, 9)) if one_sided else 9
        if where != 0:
            target[name] = op
        if where != 1:
            golden[name] = changed(draw, copy.deepcopy(op), md5)
    return target, golden


def renumbered(data, by):
    """The same run with other call numbers, as behind some calls that were not recorded."""
    out = {}
    for name, op in data.items():
        parts = name.split(".")
        at = next((i for i in (-1, -2) if parts[i].isdigit() and "parameters_grad" not in name), None)
        if at is not None:
            parts[at] = str(int(parts[at]) + by)
        out[".".join(parts)] = op
    return out


# ---- tensor dumps ---------------------------------------------------------------------------------------------------
@st.composite
def arrays(draw, shape=None, dtype=None):
    shape = draw(st.sampled_from(SHAPES)) if shape is None else shape
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    values = numpy.random.default_rng(draw(st.integers(0, 3))).standard_normal(shape)
    values = values * draw(st.sampled_from([1.0, 1e-3, 300.0, 0.0]))
    return {"array": values, "dtype": dtype, "requires_grad": draw(st.booleans())}


def changed_array(draw, item):
    how = draw(st.sampled_from(["same"] * 3 + ["bit", "much", "nan", "inf", "dtype", "shape"]))
    array = numpy.array(item["array"])
    mine = item
    if how == "bit":
        array = array * (1 + 1e-6)
    elif how == "much":
        array = array + draw(st.sampled_from([0.01, 1.0]))
    elif how in ("nan", "inf") and array.size and item["dtype"] not in ("torch.int64", "torch.bool"):
        array.flat[0] = float(how)
        mine = {**item, "array": array.copy()}  # both: at other places, the earlier tool says nothing
    elif how == "dtype":
        return mine, {**item, "dtype": draw(st.sampled_from(DTYPES))}
    elif how == "shape":
        return mine, draw(arrays(dtype=item["dtype"]))
    return mine, {**item, "array": array}


@st.composite
def pairs_of_tensor_dumps(draw, one_sided=True):
    """As above with arrays in the place of tensors; `write_tensors` makes files of them."""
    target, golden = {}, {}
    for name in draw(names_of_calls()):
        sides = ({}, {})
        if ".parameters_grad" in name:
            places = {"weight": [True]}
        elif ".backward" in name:
            places = {"input": [True], "output": [True] * draw(st.integers(1, 2))}
        else:
            fewest = int(".to." in name)
            kinds = st.lists(st.booleans(), min_size=fewest, max_size=2)
            places = {"input_args": draw(kinds), "input_kwargs": {}, "output": [True]}
        for place, kinds in places.items():
            if isinstance(kinds, dict):
                for op in sides:
                    op[place] = {}
                continue
            values = [changed_array(draw, draw(arrays())) if k else (draw(scalars),) * 2 for k in kinds]
            for side, op in enumerate(sides):
                op[place] = [value[side] for value in values]
        where = draw(st.integers(0, 9)) if one_sided else 9
        if where != 0:
            target[name] = sides[0]
        if where != 1:
            golden[name] = sides[1]
    return target, golden


def write_tensors(folder, data):
    import torch

    folder.mkdir(parents=True)
    (folder / "dump_tensor_data").mkdir()
    states = {"input_args": "input", "input": "input", "output": "output"}

    def item(value, name):
        if not isinstance(value, dict) or "array" not in value:
            return value
        tensor = torch.tensor(value["array"]).to(getattr(torch, value["dtype"].removeprefix("torch.")))
        torch.save(tensor, folder / "dump_tensor_data" / f"{name}.pt")
        out = {"type": "torch.Tensor", "dtype": value["dtype"], "shape": list(tensor.shape)}
        known = tensor.numel() > 0
        number = tensor.double() if tensor.dtype not in (torch.bool, torch.int64) else None
        out["Max"] = tensor.max().item() if known else None
        out["Min"] = tensor.min().item() if known else None
        out["Mean"] = number.mean().item() if known and number is not None else None
        out["Norm"] = number.norm().item() if known and number is not None else None
        return {**out, "requires_grad": value["requires_grad"], "data_name": f"{name}.pt"}

    out = {}
    for name, op in data.items():
        out[name] = {}
        for place, values in op.items():
            if isinstance(values, dict):
                out[name][place] = values
                continue
            prefix = f"{name}.{place}" if ".parameters_grad" in name else f"{name}.{states[place]}"
            lone = ".parameters_grad" in name
            out[name][place] = [item(v, prefix if lone else f"{prefix}.{i}") for i, v in enumerate(values)]
    envelope = {"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": out}
    (folder / "dump.json").write_text(json.dumps(envelope))
    return folder / "dump.json"

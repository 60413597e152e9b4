"""What MindSpore would have written of a run of PyTorch: the same values under MindSpore's names, groups as names."""

import hashlib
import json
import re

DTYPES = {"float32": "Float32", "int64": "Int64", "bool": "Bool", "bfloat16": "BFloat16"}
# Prefix of functions that MindSpore has elsewhere.
PREFIXES = {"Module": "Cell", "Torch": "Mint", "Functional": "MintFunctional", "Distributed": "MintDistributed"}


def twin_name(name):
    first, dot, rest = name.partition(".")
    return PREFIXES.get(first, first) + dot + rest


def group_name(ranks):
    """As mindspore.mint.distributed.new_group calls it."""
    return f"hccl_{len(ranks)}_{hashlib.sha1('_'.join(map(str, ranks)).encode()).hexdigest()}"


def twin_value(value):
    if isinstance(value, list):
        return [twin_value(v) for v in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "torch.Tensor":
        out = {k: v for k, v in value.items() if k != "requires_grad"}
        return {**out, "type": "mindspore.Tensor", "dtype": DTYPES[value["dtype"].removeprefix("torch.")]}
    if value.get("type") == "torch.ProcessGroup":
        return {"type": "str", "value": group_name(value["group_ranks"])}
    if value.get("class_type") == "torch.distributed.P2POp":
        kept = {k: twin_value(v) for k, v in value.items() if k != "group_id"}
        return {**kept, "class_type": "mindspore.mint.distributed.P2POp"}
    return {k: twin_value(v) for k, v in value.items()}


def twin_op(name, op):
    """Norms call their parameters gamma and beta."""
    out = twin_value(op)
    if ".LayerNorm." in name:
        for of in (out.get("parameters"), out if "parameters_grad" in name else None):
            for torch_name, own in (("weight", "gamma"), ("bias", "beta")):
                if of and torch_name in of:
                    of[own] = of.pop(torch_name)
    return out


def write_twin(source, out):
    """The directory of one rank."""
    out.mkdir(parents=True)
    dump = json.loads((source / "dump.json").read_text())
    dump["framework"] = "mindspore"
    dump["data"] = {twin_name(name): twin_op(name, op) for name, op in dump["data"].items()}
    (out / "dump.json").write_text(json.dumps(dump, indent=1))
    construct = json.loads((source / "construct.json").read_text())
    named = {}
    for name, parent in construct.items():
        if isinstance(parent, list):
            parent = [twin_name(parent[0]) if parent[0] else parent[0], *parent[1:]]
        elif isinstance(parent, str):
            parent = twin_name(parent)
        named[twin_name(name)] = parent
    (out / "construct.json").write_text(json.dumps(named, indent=1))
    stacks = json.loads((source / "stack.json").read_text())
    renamed = {k: [[twin_name(n) for n in names], frames] for k, (names, frames) in stacks.items()}
    (out / "stack.json").write_text(json.dumps(renamed, indent=1))


def write_twins(source, out):
    """All ranks below `source`; returns `out`."""
    for dump in sorted(source.rglob("dump.json")):
        write_twin(dump.parent, out / dump.parent.relative_to(source))
    return out


def torch_text(text):
    """A text of a graph of MindSpore with the names of PyTorch."""
    text = re.sub(r"\bCell\.", "Module.", text)
    text = re.sub(r"\b(Mint|MintFunctional|MintDistributed)\.", lambda m: BACK[m.group(1)], text)
    return text


BACK = {
    own: f"{name}."
    for name, own in (("Torch", "Mint"), ("Functional", "MintFunctional"), ("Distributed", "MintDistributed"))
}

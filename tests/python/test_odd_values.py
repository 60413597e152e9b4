"""Everything a model may pass around: its form in dump.json, and that nothing of the user's runs for it."""

import csv
import json
import math
import sqlite3
import subprocess

import pytest
from capture_helpers import capture
from graph_cases import find_command
from launch import run_python

# A statement for each kind of value; `op` is a function that is recorded.
KINDS = """
import collections, dataclasses, decimal, enum, fractions, types
import numpy as np
zoo = types.ModuleType("zoo")
zoo.op = lambda *args, **kwargs: None
sys.modules["zoo"] = zoo
debugger.register_custom_api(zoo, "op")

class Trap:  # whatever of it runs ends the process
    def stop(self, *args):
        raise SystemExit("code of the user ran")
    __repr__ = __str__ = __iter__ = __len__ = __eq__ = __hash__ = __getitem__ = __bool__ = __index__ = __float__ = stop

@dataclasses.dataclass
class Data:
    number: int
    tensor: torch.Tensor

class Dict(dict):
    def items(self):
        raise SystemExit("code of the user ran")
    __iter__ = keys = values = __getitem__ = items

class Text(str):
    def __str__(self):
        raise SystemExit("code of the user ran")

class Color(enum.Enum):
    RED = 1

class Level(enum.IntEnum):
    HIGH = 3

class Functions(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, kinds, args=(), kwargs=None):
        raise SystemExit("code of the user ran")

class Dispatch(torch.Tensor):
    __slots__ = ["inner"]
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, function, kinds, args=(), kwargs=None):
        raise SystemExit("code of the user ran")

Pair = collections.namedtuple("Pair", "x y")
jagged = types.new_class("JaggedTensor")
jagged.__module__ = "torchrec.sparse.jagged_tensor"
keyed = jagged()
keyed._values, keyed._weights, keyed._lengths, keyed._offsets = torch.ones(3), None, torch.tensor([1, 2]), None

t = torch.arange(24.0).reshape(4, 6) - 7
sparse = torch.tensor([[0, 1.0, 0, 2], [0, 0, 3, 0], [4, 0, 0, 0], [0, 0, 0, 5]])
complex_ = torch.tensor([3 + 4j, 1j])
freed = torch.ones(5)[2:]
freed.untyped_storage().resize_(0)
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    fake = torch.empty(2, 3)
loop, deep = [1], t
loop.append(loop)
for _ in range(450):
    deep = [deep]
def numbers():
    yield 1
generator, iterator = numbers(), iter([1, 2])
from torch.fx.experimental.symbolic_shapes import ShapeEnv
symbolic = FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.ones(5, 2)).shape[0]
values = {
    "coo": sparse.to_sparse(), "csr": sparse.to_sparse_csr(), "csc": sparse.to_sparse_csc(),
    "bsr": sparse.to_sparse_bsr((2, 2)), "quantized": torch.quantize_per_tensor(t, 0.5, 3, torch.qint8),
    "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3) * 2]),
    "jagged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3) * 2], layout=torch.jagged),
    "conj": complex_.conj(), "neg": complex_.conj().imag, "mkldnn": t.to_mkldnn(), "meta": torch.empty(2, device="meta"),
    "fake": fake, "freed": freed, "masked": torch.masked.masked_tensor(t, t > 0),
    "functions": torch.ones(3).as_subclass(Functions), "dispatch": Dispatch(torch.ones(2)),
    "bits": torch.zeros(2, dtype=torch.uint8).view(torch.bits8), "half": torch.tensor([60000.0, 1], dtype=torch.half),
    "near": torch.tensor([8100.0], dtype=torch.half), "brain": torch.tensor([3e38, 1], dtype=torch.bfloat16),
    "nan": torch.tensor([1, float("nan"), float("inf")]),
    "data": Data(1, torch.ones(2)), "pair": Pair(1, None), "returned": torch.max(torch.ones(1, 1), dim=0),
    "ordered": collections.OrderedDict(b=1, a=2), "user": collections.UserDict(k=1), "own": Dict(k=1),
    "default": collections.defaultdict(list, {1: 1, (1, 2): 2, None: 3, Color.RED: 4, t: 5}),
    "loop": loop, "dtype": torch.float16, "device": torch.device("cpu"), "complex": 1 + 2j, "set": {3, 1, "a"},
    "frozen": frozenset([1]), "generator": torch.Generator(), "layout": torch.strided, "object": Trap(), "class": Trap,
    "function": numbers, "list_of_objects": [Trap(), 1], "text": Text("x"), "surrogate": "\\ud800", "keyed": keyed,
    "np_half": np.float16(2), "np_complex": np.complex64(1j), "np_array": np.arange(3), "np_long": np.longdouble(2),
    "np_nan": np.array([1, float("nan")]), "np_object": np.array([None]), "np_date": np.datetime64("2020-01-01"),
    "np_masked": np.ma.masked_array([1, 2], [0, 1]), "np_text": np.array(["a"]),
    "enum": Color.RED, "int_enum": Level.HIGH, "range": range(3), "bytes": b"abc", "fraction": fractions.Fraction(1, 3),
    "decimal": decimal.Decimal("1.5"), "size": torch.Size([1, 2]), "slice": slice(1, t[0, 0].long(), None),
    "ellipsis": ..., "format": torch.channels_last, "large": 2**70, "iterator": iterator, "numbers": generator,
    "queue": collections.deque([1]), "symbol": symbolic, "deep": deep,
}
class Inner(nn.Module):
    def forward(self, value):
        zoo.op(value)
        return value
model = nn.Sequential(nn.Sequential(Inner()))
debugger.start(model=model)
for value in values.values():
    model(value)
debugger.stop()
debugger.step()
print("LEFT", next(generator), next(iterator), list(values) == json.loads(json.dumps(list(values))))
print("KINDS", json.dumps(list(values)))
"""


def tensor(dtype, shape, most, least, mean, norm, **more):
    item = {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": shape, "Max": most, "Min": least}
    item.update({"Mean": mean, "Norm": norm, "requires_grad": False})
    return {**item, **more}


def of_class(path, **item):
    return {**tensor(**item), "type": path}


def nothing(dtype, shape, path="torch.Tensor"):
    return of_class(path, dtype=dtype, shape=shape, most=None, least=None, mean=None, norm=None)


ROOT55, T = (
    math.sqrt(55),
    {"most": 16.0, "least": -7.0, "mean": 4.5, "norm": math.sqrt(sum((i - 7) ** 2 for i in range(24)))},
)
SPARSE = tensor("float32", [4, 4], 5.0, 1.0, 3.0, ROOT55)
NESTED = {"dtype": "float32", "shape": [5], "most": 2.0, "least": 1.0, "mean": 1.6, "norm": math.sqrt(14)}
EXPECTED = {
    "coo": SPARSE,
    "csr": SPARSE,
    "csc": SPARSE,
    "bsr": {**SPARSE, "Min": 0.0, "Mean": 0.9375},
    "quantized": tensor("qint8", [4, 6], **T),
    "nested": tensor(**NESTED),
    "jagged": of_class("torch.nested._internal.nested_tensor.NestedTensor", **NESTED),
    "conj": tensor("complex64", [2], 5.0, 1.0, 3.0, math.sqrt(26)),
    "neg": tensor("float32", [2], -1.0, -4.0, -2.5, math.sqrt(17)),
    "mkldnn": tensor("float32", [4, 6], **T),
    "meta": nothing("float32", [2]),
    "fake": nothing("float32", [2, 3], "torch._subclasses.fake_tensor.FakeTensor"),
    "freed": nothing("float32", [3]),
    "masked": of_class(
        "torch.masked.maskedtensor.core.MaskedTensor",
        dtype="float32",
        shape=[4, 6],
        most=16.0,
        least=1.0,
        mean=8.5,
        norm=math.sqrt(sum(i * i for i in range(17))),
    ),
    "functions": tensor("float32", [3], 1.0, 1.0, 1.0, math.sqrt(3)),
    "dispatch": nothing("float32", [2]),
    "bits": nothing("bits8", [2]),
    "half": tensor("float16", [2], 60000.0, 1.0, 30000.5, math.hypot(60000, 1), overflow_margin=65504 / 60000),
    "near": tensor("float16", [1], 8100.0, 8100.0, 8100.0, 8100.0),  # more than eight times from the end
    "brain": tensor("bfloat16", [2], 3.00405527047391e38, 1.0, 1.502027635236955e38, 3.00405527047391e38)
    | {"overflow_margin": 255 * 2.0**120 / 3.00405527047391e38},
    "nan": tensor("float32", [3], *[math.nan] * 4, nan_count=1, inf_count=1),
    "data": {"number": {"type": "int", "value": 1}, "tensor": tensor("float32", [2], 1.0, 1.0, 1.0, math.sqrt(2))},
    "pair": {"x": {"type": "int", "value": 1}, "y": None},
    "returned": [tensor("float32", [1], 1.0, 1.0, 1.0, 1.0), tensor("int64", [1], 0, 0, 0.0, 0.0)],
    "ordered": {"b": {"type": "int", "value": 1}, "a": {"type": "int", "value": 2}},
    "user": {"k": {"type": "int", "value": 1}},
    "own": {"k": {"type": "int", "value": 1}},
    "default": {
        k: {"type": "int", "value": i + 1} for i, k in enumerate(["1", "(1, 2)", "null", "Color#3", "Tensor#4"])
    },
    "loop": [{"type": "int", "value": 1}, {"type": "list", "value": "..."}],
    "dtype": {"type": "torch.dtype", "value": "torch.float16"},
    "device": {"type": "torch.device", "value": "cpu"},
    "complex": {"type": "complex", "value": "(1+2j)"},
    "set": {"type": "set", "value": "{'a', 1, 3}"},
    "frozen": {"type": "frozenset", "value": "{1}"},
    "generator": {"type": "torch.Generator", "value": "cpu"},
    "layout": {"type": "torch.layout", "value": "torch.strided"},
    "object": {"type": "__main__.Trap"},
    "class": {"type": "type", "value": "__main__.Trap"},
    "function": {"type": "function", "value": "__main__.numbers"},
    "list_of_objects": [{"type": "__main__.Trap"}, {"type": "int", "value": 1}],
    "text": {"type": "Text", "value": "x"},
    "surrogate": {"type": "str", "value": "?"},
    "keyed": {
        "values": tensor("float32", [3], 1.0, 1.0, 1.0, math.sqrt(3)),
        "lengths": tensor("int64", [2], 2, 1, 1.5, math.sqrt(5)),
    },
    "np_half": {"type": "float16", "value": 2.0},
    "np_complex": {"type": "complex64", "value": "1j"},
    "np_array": {"type": "numpy.ndarray", "dtype": "int64", "shape": [3], "Max": 2, "Min": 0, "Mean": 1.0}
    | {"Norm": math.sqrt(5)},
    "np_long": {"type": "longdouble", "value": 2.0},
    "np_nan": {"type": "numpy.ndarray", "dtype": "float64", "shape": [2]}
    | dict.fromkeys(("Max", "Min", "Mean", "Norm"), math.nan),
    "np_object": {"type": "numpy.ndarray", "dtype": "object", "shape": [1]}
    | dict.fromkeys(("Max", "Min", "Mean", "Norm")),
    "np_date": {"type": "datetime64", "value": "2020-01-01"},
    "np_masked": {"type": "numpy.ndarray", "dtype": "int64", "shape": [2], "Max": 2, "Min": 1, "Mean": 1.5}
    | {"Norm": math.sqrt(5)},
    "np_text": {"type": "numpy.ndarray", "dtype": "<U1", "shape": [1]} | dict.fromkeys(("Max", "Min", "Mean", "Norm")),
    "enum": {"type": "__main__.Color", "value": "RED"},
    "int_enum": {"type": "Level", "value": 3},
    "range": {"type": "range", "value": "range(0, 3)"},
    "bytes": {"type": "bytes", "value": "3 bytes, CRC-32 352441c2"},
    "fraction": {"type": "fractions.Fraction", "value": "1/3"},
    "decimal": {"type": "decimal.Decimal", "value": "1.5"},
    "size": {"type": "torch.Size", "value": [1, 2]},
    "slice": {"type": "slice", "value": [1, -7, None]},
    "ellipsis": {"type": "ellipsis", "value": "..."},
    "format": {"type": "torch.memory_format", "format": "channels_last"},
    "large": {"type": "int", "value": 2**70},
    "iterator": {"type": "builtins.list_iterator"},
    "numbers": {"type": "builtins.generator"},
    "queue": {"type": "collections.deque", "value": "[1]"},
    "symbol": {"type": "torch.SymInt", "value": "s*"},
}


def equal(found, expected):
    if isinstance(expected, float):
        return isinstance(found, float) and (
            math.isclose(found, expected, rel_tol=1e-6) or (math.isnan(found) and math.isnan(expected))
        )
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(equal(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(equal, found, expected))
    if expected == "s*":
        return isinstance(found, str) and found.startswith("s")
    return type(found) is type(expected) and found == expected


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("kinds"), KINDS, level="mix")


def values_of(dump):
    names = json.loads(dump.script.stdout.split("KINDS ")[1])
    entries = [entry for name, entry in dump.data().items() if name.startswith("zoo.op.")]
    assert len(names) == len(entries)
    return {name: entry["input_args"][0] for name, entry in zip(names, entries)}


def test_the_form_of_every_kind(kinds):
    found = values_of(kinds)
    assert set(found) == {*EXPECTED, "deep"}
    for name, expected in EXPECTED.items():
        assert equal(found[name], expected), (name, found[name], expected)


def test_iterators_are_left_where_they_were(kinds):
    assert "LEFT 1 1 True" in kinds.script.stdout


def test_nesting_ends_where_readers_end(kinds):
    value, depth = values_of(kinds)["deep"], 0
    while isinstance(value, list):
        value, depth = value[0], depth + 1
    assert value is None and 390 <= depth < 400
    assert "a value is nested too deeply or too large" in kinds.script.stderr


def test_a_device_gives_the_same(kinds, tmp_path, monkeypatch):
    monkeypatch.setenv("MSPROBE_FORCE_DEVICE_PATH", "1")
    found = values_of(capture(tmp_path, KINDS, level="mix"))
    for name, expected in EXPECTED.items():
        assert equal(found[name], expected), (name, found[name], expected)


def run_both(old_python, tmp_path, *args):
    """Results of the earlier tool and of ours."""
    results = []
    for name in ("theirs", "ours"):
        out = tmp_path / name
        out.mkdir()
        if name == "theirs":
            run_python([old_python.parent / "msprobe", *args, "-o", out], python=old_python, ours=False, cwd=out)
        else:
            subprocess.run([find_command(), *args, "-o", out], check=True, capture_output=True)
        (result,) = [path for path in out.iterdir() if path.suffix in (".csv", ".db")]
        results.append(result)
    return results


def without_findings(directory, tmp_path):
    """The dump without the members that only ours has."""
    copy = tmp_path / "plain"
    copy.mkdir()
    for path in directory.iterdir():
        text = path.read_text()
        if path.name == "dump.json":
            dump = json.loads(text)
            for item in every_item(dump["data"]):
                for key in ("nan_count", "inf_count", "overflow_margin"):
                    item.pop(key, None)
            text = json.dumps(dump, indent=1)
            assert "nan_count" not in text
        (copy / path.name).write_text(text)
    return copy


def every_item(value):
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from every_item(part)


def is_large(row):
    return "1.1805916207174113e+21" in str(row) or str(2**70) in str(row)  # beyond 64 bits ours is a double


def test_the_earlier_compare_reads_all_of_it(old_python, kinds, tmp_path):
    plain = without_findings(kinds.directory(), tmp_path)
    args = ["compare", "-tp", kinds.directory() / "dump.json", "-gp", plain / "dump.json"]
    theirs, ours = run_both(old_python, tmp_path, *args)
    rows = [list(csv.reader(path.open(encoding="utf-8-sig"))) for path in (theirs, ours)]
    assert len(rows[0]) == len(rows[1]) > 2 * len(EXPECTED)
    for row, other in zip(*rows):
        assert row == other or is_large(row)
    result = rows[0][0].index("Result")
    assert {row[result] for row in rows[0][1:]} == {"pass"}


def test_the_earlier_graph_reads_all_of_it(old_python, kinds, tmp_path):
    plain = without_findings(kinds.directory(), tmp_path)
    theirs, ours = run_both(old_python, tmp_path, "graph_visualize", "-tp", kinds.directory(), "-gp", plain)
    query = "select node_name, data_source, precision_index, input_data, output_data from tb_nodes order by 1, 2"
    rows = [sqlite3.connect(path).execute(query).fetchall() for path in (theirs, ours)]
    assert len(rows[0]) == len(rows[1]) > 2 * len(EXPECTED)
    for row, other in zip(*rows):
        assert row == other or is_large(row) or same_json(row, other)
    assert any("nan_count" in row[3] for row in rows[0])  # shown with the other figures of the node


def same_json(row, other):
    return row[:3] == other[:3] and all(json.loads(a) == json.loads(b) for a, b in zip(row[3:], other[3:]))


def test_the_ranks_of_a_mesh_are_asked_for_once():
    """PyTorch computes them each time. A mesh that takes the place of one that is gone is another."""
    import torch
    from msprobe.pytorch import odd_values

    class Mesh:
        asked = 0

        def __init__(self, ranks):
            self.ranks = ranks

        @property
        def mesh(self):
            Mesh.asked += 1
            return torch.tensor(self.ranks)

    kept = Mesh([[0, 1], [2, 3]])
    assert [odd_values._ranks_of(kept) for _ in range(3)] == [kept.ranks] * 3 and Mesh.asked == 1
    for number in range(200):
        assert odd_values._ranks_of(Mesh([number])) == [number]
    assert len(odd_values._meshes) <= 64 and odd_values._ranks_of(kept) == kept.ranks

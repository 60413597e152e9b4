"""What check_kernels knows of a compiled graph: what is in its buffers when, and the values of its FX nodes."""

import pytest
import torch
from msprobe.pytorch.compile_accuracy_checker.drawn import numbers
from msprobe.pytorch.compile_accuracy_checker.generated import Generated
from msprobe.pytorch.compile_accuracy_checker.kernels import bound_of
from msprobe.pytorch.compile_accuracy_checker.reference import needed, value_of
from torch import nn
from torch.nn import functional

aten = torch.ops.aten
CODE = """
fused_0 = async_compile.cpp_pybinding(['float*', 'const float*', 'const float*', 'float*', 'float*'], r'''
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr1,
                       const float* in_ptr2,
                       float* out_ptr0,
                       float* out_ptr1)
''')
fused_1 = async_compile.cpp_pybinding(['float*'], 'void kernel(float* out_ptr0)')
fused_2 = async_compile.cpp_pybinding(['float*', 'const float*', 'float*'], r'''
void kernel(float* in_out_ptr0, const float* in_ptr0, float* out_ptr0)
''')
def call(args):
    primals_1, = args
    buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    extern_kernels.mm(primals_1, primals_1, out=buf0)
    buf3 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    buf1 = reinterpret_tensor(buf3, (4, 4), (8, 1), 0)  # alias
    buf2 = reinterpret_tensor(buf3, (4, 4), (8, 1), 4)  # alias
    buf4 = reinterpret_tensor(buf0, (2, 8), (8, 1), 0); del buf0  # reuse
    fused_0(buf4, buf3, reinterpret_tensor(primals_1, (4, ), (1, ), 8), buf1, buf2)
    buf5 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    fused_1(buf5)
    aten.index_put_(buf5, [primals_1], buf4, True)
    buf6 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    buf7 = buf6; del buf6  # reuse
    fused_2(buf7, buf5, buf8)
    return (buf7, )
"""


def test_what_is_in_the_buffers():
    code = Generated(CODE, changed=frozenset(["buf5"]))
    product, first, zeros, last = code.calls
    assert (first.updated, first.outputs) == (("buf4",), ("buf4", "buf1", "buf2"))
    assert first.offsets == (0, 0, 8, 0, 0)
    # A concatenation that the kernel itself fills is no input of it, and what it has in place is.
    assert not code.holds("buf3", first.line) and code.holds("buf3", first.line + 1)
    assert code.parts["buf2"] == ("buf3", 4) and code.parts_of("buf3") == ["buf1", "buf2"]
    assert code.before("buf4", first.line) == "buf0"
    assert not code.holds("buf0", product.line) and code.holds("buf0", first.line)
    # The zeros are not the value of the buffer that index_put_ adds to.
    assert not code.holds("buf5", zeros.line + 1) and code.holds("buf5", last.line)
    # Memory that a kernel alone uses held nothing before.
    assert code.before("buf7", last.line) is None and code.holds("primals_1", 0)


def test_what_is_read_after_a_kernel():
    code = Generated(CODE, reads={"buf4": {"buf0"}, "buf7": {"buf5"}})
    product, first, *_, last = code.calls
    assert code.used_after("buf0", product.line)  # in place
    assert code.used_after("buf7", last.line) and not code.used_after("buf8", last.line)
    assert not code.used_after("buf2", first.line) and code.used_after("buf5", first.line)


def fx(*nodes):
    """A graph of (name, function, arguments, meta)."""
    graph, made = torch.fx.Graph(), {}

    def named(value):
        return made.get(value, value) if isinstance(value, str) else value

    for name, function, *arguments in nodes:
        args = torch.utils._pytree.tree_map(named, tuple(arguments))
        made[name] = graph.placeholder(name) if function is None else graph.call_function(function, args)
        made[name].name = name
    graph.output(tuple(made.values())[-1])
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def test_what_is_written_in_place():
    """A view is written: what is read before is the old value, what is read behind it the new one."""
    module = fx(
        ("x", None),
        ("zeros", aten.zeros.default, [3, 3]),
        ("before", aten.add.Tensor, "zeros", 1),
        ("view", aten.diagonal.default, "zeros"),
        ("put", aten.copy_.default, "view", "x"),
        ("behind", aten.mul.Tensor, "zeros", 2),
    )
    known = {"x": torch.tensor([1.0, 2.0, 3.0])}
    for wide in (False, True):
        assert torch.equal(value_of(module, "behind", known, wide).float(), torch.diag(2 * known["x"]))
        assert torch.equal(value_of(module, "before", known, wide).float(), torch.ones(3, 3))
        assert torch.equal(value_of(module, "zeros", known, wide).float(), torch.diag(known["x"]))
        assert not value_of(module, "zeros", known, wide, changed=False).any()
    assert [node.name for node in needed(module.graph, "behind", known)] == ["zeros", "view", "put", "behind"]
    assert [node.name for node in needed(module.graph, "before", known)] == ["zeros", "before"]


def test_known_values_stay_as_they_are():
    module = fx(("x", None), ("at", None), ("more", None), ("put", aten.index_put_.default, "x", ["at"], "more", True))
    known = {"x": torch.zeros(3), "at": torch.tensor([0, 2]), "more": torch.ones(2)}
    for _ in range(2):
        assert value_of(module, "put", known).tolist() == [1, 0, 1]
    assert known["x"].tolist() == [0, 0, 0]


def test_random_numbers():
    """Philox 4x32-10 of the counter 0 and the key 0 is 6627e8d5 e169c58d, as its authors say."""
    words = [0x6627E8D5 & 0x7FFFFFFF, 0xE169C58D & 0x7FFFFFFF]
    assert numbers("rand", 0, [1]).item() == pytest.approx(words[0] / 2**31)
    angle, radius = torch.tensor([1 - word / 2**31 for word in words]).double().flip(0)
    assert numbers("randn", 0, [1]).item() == pytest.approx(
        ((-2 * radius.log()).sqrt() * (2 * torch.pi * angle).cos()).item(), 1e-4
    )
    assert torch.equal(numbers("rand", -5, [2, 5]).flatten()[3:], numbers("rand", -5, [7], offset=3))
    assert (
        abs(numbers("randn", 1, [10000]).std().item() - 1) < 0.05
        and abs(numbers("rand", 1, [10000]).mean().item() - 0.5) < 0.02
    )


def test_a_long_sum_rounds_at_each_step():
    """One element after the other is right; without one of the elements it is wrong."""
    x = torch.rand(5000, 8, generator=torch.Generator().manual_seed(0))
    module = fx(("x", None), ("total", aten.sum.dim_IntList, "x", [0]))
    for node in module.graph.nodes:
        node.meta["val"] = x if node.name == "x" else x[0]
    generators = (None, *(torch.Generator().manual_seed(seed) for seed in range(3)))
    truths = [value_of(module, "total", {"x": x}, True, generator) for generator in generators]
    serial = torch.zeros(8)
    for row in x:
        serial = serial + row
    bound = bound_of(truths, torch.float32)
    assert ((serial - truths[0]).abs() <= bound).all()
    assert not ((serial - x[7] - truths[0]).abs() <= bound).any()


def rotary(x, w, s):
    q = (x @ w).view(4, 6, 8)
    return q * s.cos() + torch.cat([-q[..., 4:], q[..., :4]], -1) * s


def counted(x, at):
    # a scatter in one kernel and one in a library, both into zeros of another kernel
    added = torch.zeros(8, 8).scatter_add(0, at, x[:6, :8].exp())
    return torch.zeros(8, 8).index_add(0, at[:, 0], added[:6] * 2) + added


def on_the_diagonal(x):
    y = x.tril() + x.triu(1).exp()
    return y.softmax(-1).diagonal() * 2 + x.flip(1)[:, 0]


def noisy(x, w):
    return functional.dropout((x @ w).exp() + 1, 0.3).softmax(-1) + torch.rand_like(x) * torch.randn_like(x)


def pooled(x):
    return functional.max_pool2d(x.exp(), 2).tanh()


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        return self.norm(x.exp()).relu()


def values(*sizes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).requires_grad_() for size in sizes]


# name: (function, arguments, whether it has a backward pass, which of its operations is compiled wrongly)
GRAPHS = {
    "parts and memory used again": (rotary, lambda: values((24, 8), (8, 8), (6, 8)), False, "neg"),
    "put into what is there": (counted, lambda: [*values((8, 8)), torch.arange(48).view(6, 8) % 8], False, ""),
    "a view that is written": (on_the_diagonal, lambda: values((12, 12)), True, ""),
    "random numbers": (noisy, lambda: values((8, 8), (8, 8)), False, "exp"),
    "argument of a library's kernel": (pooled, lambda: values((2, 3, 8, 8)), True, ""),
    "inputs that are changed": (Normed(), lambda: values((2, 4, 5, 5)), False, ""),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name, monkeypatch):
    """Every result is known and right; with a wrong lowering it is found."""
    import torch._inductor.lowering
    from msprobe.pytorch.compile_accuracy_checker import check_kernels

    function, make, backward, wrong = GRAPHS[name]
    torch.manual_seed(0)
    clean = check_kernels(function, *make(), backward=backward)
    assert not [row for row in clean if row.verdict not in ("same bits", "both round-off")], clean
    if not wrong:
        return
    lowerings = torch._inductor.lowering.lowerings
    op = getattr(aten, wrong).default
    right, times = lowerings[op], lowerings[aten.mul.Tensor]
    monkeypatch.setitem(lowerings, op, lambda x: times(right(x), 1.001))
    rows = check_kernels(function, *make(), backward=False)
    found = [row for row in rows if row.verdict == "compiled wrong"]
    assert found and all(row.blamed.startswith(wrong) for row in found), rows
    assert all(any(line.startswith("test_compiled_graphs.py:") for line in row.lines) for row in found)

"""`msprobe lowp` and fake_quantize: their numbers against codecs and products that know nothing of them."""

import json
import math

import pytest
import torch
import torch.nn.functional as F
from capture_helpers import capture
from graph_cases import run
from msprobe.pytorch import fake_quantize

BF16 = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
TORCH = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def same(a, b):
    return bool(((a == b) & (torch.signbit(a) == torch.signbit(b)) | (a.isnan() & b.isnan())).all())


@pytest.mark.parametrize("name", TORCH)
def test_casts_are_those_of_pytorch(name):
    largest = torch.finfo(TORCH[name]).max
    want = BF16.clamp(-largest, largest).to(TORCH[name]).float()
    assert same(fake_quantize(BF16, f"{name}:cast"), want)
    # Half a step beyond the largest number still rounds to it. Some releases of PyTorch saturate beyond, others do not.
    step = {"e4m3": 32, "e5m2": 8192}[name]
    beyond = BF16.abs() > largest + step / 2 if name == "e4m3" else BF16.abs() >= largest + step / 2
    outside = torch.full_like(BF16, math.nan) if name == "e4m3" else BF16.sign() * math.inf
    want = torch.where(beyond, outside, want)
    assert same(fake_quantize(BF16, f"{name}:cast", saturate=False), torch.where(BF16.isnan(), BF16, want))


def numbers(exponent_bits, fraction_bits, bias, largest):
    """All numbers of a format that are not negative, with whether the last bit of each is set."""
    out = []
    for code in range(1 << (exponent_bits + fraction_bits)):
        exponent, fraction = code >> fraction_bits, code & ((1 << fraction_bits) - 1)
        scale = 2.0 ** (max(exponent, 1) - bias - fraction_bits)
        out.append(((fraction + ((1 << fraction_bits) if exponent else 0)) * scale, code & 1))
    return [n for n in sorted(set(out)) if n[0] <= largest]


FORMATS = {
    "e4m3": numbers(4, 3, 7, 448),
    "e5m2": numbers(5, 2, 15, 57344),
    "e3m2": numbers(3, 2, 3, 28),
    "e2m3": numbers(2, 3, 1, 7.5),
    "e2m1": numbers(2, 1, 1, 6),
}


def nearest(values, name):
    """By looking at every number of the format."""
    table = torch.tensor([n for n, _ in FORMATS[name]], dtype=torch.float64)
    odd = torch.tensor([o for _, o in FORMATS[name]])
    distance = (values.double().abs()[..., None] - table).abs()
    closest = distance.min(-1, keepdim=True).values
    # Of two at the same distance the even one.
    choice = torch.where(distance == closest, odd, 2).argmin(-1)
    return torch.copysign(table[choice], values.double())


def blocks(kind):
    torch.manual_seed(5)
    spread = torch.randn(96, 128) * torch.exp(3 * torch.randn(96, 128))
    return {
        "normal": torch.randn(96, 128),
        "spread": spread,
        "bfloat16": spread.bfloat16().float(),
        "tiny": 1e-30 * torch.randn(96, 128),
        "huge": 1e30 * torch.randn(96, 128),
        "zeros": torch.zeros(96, 128),
    }[kind]


BLOCKS = ("normal", "spread", "bfloat16", "tiny", "huge", "zeros")
MX = {
    "mxfp8": ("e4m3", 8),
    "mxfp8_e5m2": ("e5m2", 15),
    "mxfp6": ("e2m3", 2),
    "mxfp6_e3m2": ("e3m2", 4),
    "mxfp4": ("e2m1", 2),
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("name", MX)
def test_mx_is_as_its_specification_has_it(name, kind):
    element, largest_power = MX[name]
    x = blocks(kind)
    grouped = x.reshape(96, -1, 32).double()
    largest = grouped.abs().amax(-1, keepdim=True)
    power = torch.floor(torch.log2(largest)).clamp(min=-126) - largest_power
    scale = torch.exp2(power.nan_to_num(neginf=-126).clamp(-126, 127))
    want = (nearest(grouped / scale, element) * scale).reshape(96, 128)
    assert same(fake_quantize(x, name), want.float())


@pytest.mark.parametrize("kind", [k for k in BLOCKS if k not in ("tiny", "huge")])
def test_nvfp4_has_two_levels_of_scales(kind):
    x = blocks(kind)
    grouped = x.reshape(96, -1, 16)
    of_tensor = x.abs().max() / torch.tensor(448.0 * 6.0)
    if of_tensor == 0:
        assert same(fake_quantize(x, "nvfp4"), x)
        return
    wanted = (grouped.abs().amax(-1, keepdim=True) / 6 / of_tensor).clamp(2.0**-6, 448)
    of_block = nearest(wanted, "e4m3").float()
    stored = nearest((grouped * ((1 / of_tensor) / of_block)).clamp(-6, 6), "e2m1").float()
    assert same(fake_quantize(x, "nvfp4"), (stored * (of_tensor * of_block)).reshape(96, 128))


def test_scales_of_floats_take_the_group_that_is_asked_for():
    x = blocks("spread")
    groups = {
        "tensor": x.reshape(1, 1, -1),
        "row": x.reshape(96, 1, 128),
        "32": x.reshape(96, 4, 32),
        "1x128": x.reshape(96, 1, 128),
    }
    for group, grouped in groups.items():
        scale = (448.0 / grouped.abs().amax(-1, keepdim=True).double()).float()
        want = nearest((grouped * scale).clamp(-448, 448), "e4m3").float() / scale
        assert same(fake_quantize(x, f"e4m3:{group}"), want.reshape(96, 128)), group
    scale = (127.0 / x.abs().amax(-1, keepdim=True).double()).float()
    assert same(fake_quantize(x, "int8:row"), (x * scale).round().clamp(-127, 127) / scale)
    # 128 rows share a square; 96 are less than one.
    assert same(fake_quantize(x, "e4m3:128x128"), fake_quantize(x, "e4m3"))


def philox(seed, block):
    """Philox4x32-10, from the paper's formulas."""
    c, k = [block & 0xFFFFFFFF, block >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_the_generator_is_philox():
    # Known answers of Random123 for a counter and a key of zeros.
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("name", ["e4m3", "e2m1"])
def test_rounding_at_random_takes_the_stated_draws(name):
    torch.manual_seed(1)
    x = 3 * torch.randn(40, 5)
    seed = (7 << 32) + 3
    digits, least = {"e4m3": (3, -6), "e2m1": (1, 0)}[name]
    want = []
    for i, value in enumerate(x.flatten().tolist()):
        draw = (philox(seed, i // 4)[i % 4] >> 8) / 2**24
        power = max(math.floor(math.log2(abs(value))), least) - digits
        want.append(
            math.copysign(min(math.floor(abs(value) / 2**power + draw) * 2**power, FORMATS[name][-1][0]), value)
        )
    got = fake_quantize(x, f"{name}:cast", stochastic=True, seed=seed)
    assert got.flatten().tolist() == want
    many = torch.full((1, 40000), 1.3)
    assert abs(fake_quantize(many, "e2m1:cast", stochastic=True).mean() - 1.3) < 0.01  # without a bias


def test_an_unknown_format_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="mxfp8"):
        fake_quantize(torch.ones(4), "e9m9")
    with pytest.raises(TypeError, match="floating"):
        fake_quantize(torch.ones(4, dtype=torch.int32), "e4m3")


CALLS = """
torch.manual_seed(3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, dilation=(1, 2), groups=2)
        self.line = nn.Conv1d(6, 8, 3, padding=2)
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8, bias=False)

    def forward(self, x):
        y = self.line(self.conv(x).flatten(2)).transpose(1, 2)
        h = self.down(torch.tanh(self.up(y)))
        q = h.reshape(h.shape[0], -1, 4, 2).transpose(1, 2)
        a = F.scaled_dot_product_attention(q, q[:, :2], q[:, 2:], is_causal=True, enable_gqa=True)
        mask = torch.ones(a.shape[2], a.shape[2], dtype=torch.bool).tril(2)
        b = F.scaled_dot_product_attention(q, q, q, attn_mask=mask, scale=0.3)
        s = torch.matmul(a, q[:, :1].transpose(-1, -2)) + torch.matmul(b, b.transpose(-1, -2))
        t = torch.addmm(torch.ones(4, 3), s.flatten()[:12].reshape(4, 3) * 2, torch.randn(3, 3))
        return torch.bmm(s[0], b[0]).square().mean() + t.mean()

model = Net()
debugger.start(model)
model(torch.randn(2, 4, 7, 6)).backward()
debugger.stop()
debugger.step()
"""


def tensors(dump):
    """(call, place) -> tensor, of the forward and backward pass."""
    data = (
        dump.dir() / "dump_tensor_data"
        if callable(getattr(dump, "dir", None))
        else next(dump.root.glob("step0/*/dump_tensor_data"))
    )
    return {file.name[:-3]: torch.load(file, weights_only=True).double() for file in data.glob("*.pt")}


def relative(stored, full):
    return float((stored - full).norm() / full.norm())


def quantized(tensor, name):
    return fake_quantize(tensor.float(), name).double()


def expected(call, of, name):
    """The errors of result, input's and weight's gradient, by PyTorch in float64."""
    q = lambda t: quantized(t, name)  # noqa: E731
    a, b = of[f"{call}.forward.input.0"], of[f"{call}.forward.input.1"]
    gradient = of.get(f"{call}.backward.input.0")
    if call.startswith("Functional.linear"):
        rows, g = a.reshape(-1, a.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
        turned = lambda t: q(t.T.contiguous())  # noqa: E731
        return (
            relative(q(a) @ q(b).T, a @ b.T),
            relative(q(g) @ turned(b).T, g @ b),
            relative(turned(g) @ turned(rows).T, g.T @ rows),
        )
    if "conv" in call:
        conv, options = (
            (F.conv2d, {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2})
            if "2d" in call
            else (F.conv1d, {"padding": 2})
        )
        return (relative(conv(q(a), q(b), **options), conv(a, b, **options)),)
    if "attention" in call:
        value = of[f"{call}.forward.input.2"]
        if f"{call}.forward.attn_mask" in of or f"{call}.forward.input.attn_mask" in of or call.endswith(".1"):
            mask = torch.ones(a.shape[2], a.shape[2], dtype=torch.bool).tril(2)
            attend = lambda x, y, z: F.scaled_dot_product_attention(x, y, z, attn_mask=mask, scale=0.3)  # noqa: E731
        else:
            attend = lambda x, y, z: F.scaled_dot_product_attention(x, y, z, is_causal=True, enable_gqa=True)  # noqa: E731
        return (relative(attend(q(a), q(b), q(value)), attend(a, b, value)),)
    if "addmm" in call:
        a, b = b, of[f"{call}.forward.input.2"]
    return (relative(q(a) @ q(b.mT.contiguous()).mT, a @ b),)


@pytest.fixture(scope="module")
def of_calls(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("calls"), CALLS, level="mix", task="tensor")


def lowp(dump, *more, check=True):
    return run(["lowp", dump, "--json", *more], check=check)


def test_each_result_loses_what_pytorch_says(of_calls):
    report = json.loads(lowp(of_calls.root, "--formats", "e4m3").stdout)
    of = tensors(of_calls)
    layers = {layer["call"].removesuffix(".forward"): layer for layer in report["plans"][0]["layers"]}
    kinds = {call.split(".")[1] for call in layers}
    assert kinds == {"conv1d", "conv2d", "linear", "matmul", "addmm", "bmm", "scaled_dot_product_attention"}
    assert report["without_values"] == report["not_emulated"] == []
    for call, layer in layers.items():
        want = expected(call, of, "e4m3")
        got = [layer[key]["error"] if layer[key] else None for key in ("result", "input_gradient", "weight_gradient")]
        for w, g in zip(want, got):
            # Sums are in float32 here, so figures agree to what that rounds.
            assert g == pytest.approx(w, rel=2e-3), call
        assert layer["loss_change"] is not None, call
    assert {layers["Functional.conv2d.0"]["layer"], layers["Functional.linear.0"]["layer"]} == {"conv", "up"}


@pytest.mark.parametrize("name", ["mxfp8", "e4m3:row", "nvfp4", "int8"])
def test_scales_lie_along_the_sums_of_each_product(of_calls, name):
    report = json.loads(lowp(of_calls.root, "--formats", name).stdout)
    of = tensors(of_calls)
    for layer in report["plans"][0]["layers"]:
        call = layer["call"].removesuffix(".forward")
        if not call.startswith("Functional.linear"):
            continue
        want = expected(call, of, name)
        got = [layer[key]["error"] for key in ("result", "input_gradient", "weight_gradient")]
        assert got == pytest.approx(want, rel=2e-3), call


TRAINED = """
torch.manual_seed(0)
import transformers
transformers.logging.set_verbosity_error()
{build}
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range({steps}):
    optimizer.zero_grad()
    model(**batch()).loss.backward()
    optimizer.step()
inputs = batch()
debugger.start(model)
model.zero_grad()
model(**inputs).loss.backward()
debugger.stop()
debugger.step()

def change(name):
    from msprobe.pytorch import fake_quantize
    from collections import OrderedDict
    out = {{}}
    def losses():
        with torch.no_grad():
            logits = model(**inputs).logits
        labels = inputs["labels"]
        if logits.dim() == 3:
            return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), reduction="none")
        return F.cross_entropy(logits, labels, reduction="none")
    before = losses()
    for path, module in model.named_modules():
        if type(module).__name__ not in ("Linear", "Conv1D", "Conv2d"):
            continue
        weight = module.weight.data
        module.weight.data = fake_quantize(weight, name)
        hook = module.register_forward_pre_hook(lambda m, a: (fake_quantize(a[0], name), *a[1:]))
        out[path] = float((losses() - before).square().mean().sqrt())
        hook.remove()
        module.weight.data = weight
    return out

import json, sys
with open("{file}", "w") as f:
    json.dump({{name: change(name) for name in ("e4m3", "int8")}}, f)
"""
TOKENS = """
def batch():
    ids = torch.cumsum(torch.randint(0, 3, (4, 24)), 1) % 97
    return dict(input_ids=ids, labels=ids)
"""
BUILDS = {
    "llama": "model = transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=48, intermediate_size=96, num_hidden_layers=3, "
    "num_attention_heads=4, num_key_value_heads=2, vocab_size=97))" + TOKENS,
    "gpt2": "model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=48, n_layer=3, n_head=4, vocab_size=97, n_positions=64, "
    "resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))" + TOKENS,
    "vit": "model = transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=48, num_hidden_layers=3, num_attention_heads=4, "
    "intermediate_size=96, image_size=32, patch_size=8, num_labels=10))\n"
    "protos = torch.randn(10, 3, 32, 32)\n"
    "def batch():\n    y = torch.randint(0, 10, (24,))\n    return dict(pixel_values=protos[y] + torch.randn(24, 3, 32, 32), labels=y)\n",
}


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0] * len(values)
    for place, i in enumerate(order):
        out[i] = place
    return out


def spearman(a, b):
    n, d = len(a), sum((x - y) ** 2 for x, y in zip(ranks(a), ranks(b)))
    return 1 - 6 * d / (n * (n * n - 1))


@pytest.mark.parametrize("model", BUILDS)
def test_layers_rank_as_when_each_is_quantized_alone(model, tmp_path):
    text = TRAINED.format(build=BUILDS[model], steps=40, file=tmp_path / "changes.json")
    dump = capture(tmp_path / "dump", text, level="mix", task="tensor")
    changes = json.loads((tmp_path / "changes.json").read_text())
    report = json.loads(lowp(dump.root, "--formats", ",".join(changes)).stdout)
    for plan in report["plans"]:
        figures = {layer["layer"]: layer["loss_change"] for layer in plan["layers"]}
        alone = changes[plan["name"]]
        assert set(alone) <= set(figures)
        assert spearman([alone[path] for path in alone], [figures[path] for path in alone]) >= 0.8, plan["name"]


LAYERS = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
x = torch.randn(32, 64)
x[:, 17] *= {times}
for step in range({steps}):
    debugger.start(model)
    model({scale} ** step * x).square().mean().backward()
    debugger.stop()
    debugger.step()
"""


def test_an_outlier_channel_is_named(tmp_path):
    dump = capture(tmp_path, LAYERS.format(times=300, steps=1, scale=1), level="mix", task="tensor")
    result = lowp(dump.root, "--formats", "int8,e4m3,int8:32", "--fail-on", "suspicious", check=False)
    report = json.loads(result.stdout)
    plans = {plan["name"]: {layer["layer"]: layer for layer in plan["layers"]} for plan in report["plans"]}
    assert plans["int8"]["0"]["verdict"] == "loses" and plans["int8"]["0"]["outlier_channels"]["largest"] == 17
    assert plans["e4m3"]["0"]["verdict"] == "keeps"  # numbers with exponents do not lose the small ones
    assert result.returncode == 1 and report["judgement"]["kind"] == "suspicious"
    text = run(["lowp", dump.root, "--formats", "int8"], check=False).stdout
    assert "0 " in text and ("become 0" in text or "channel 17" in text)


def test_delayed_scales_come_from_earlier_steps(tmp_path):
    dump = capture(tmp_path, LAYERS.format(times=1, steps=3, scale=8), level="mix", task="tensor")
    report = json.loads(lowp(dump.root, "--formats", "e4m3:delayed,e4m3").stdout)
    assert report["step"] == 2
    delayed, current = ({layer["layer"]: layer for layer in plan["layers"]} for plan in report["plans"])
    # The input is eight times what any earlier step had: it saturates.
    assert delayed["0"]["inputs"]["saturated"] > 0.1 and delayed["0"]["verdict"] == "loses"
    assert current["0"]["inputs"]["saturated"] == 0 and current["0"]["verdict"] == "keeps"
    alone = run(["lowp", dump.root, "--formats", "e4m3:delayed", "--step", "0"], check=False)
    assert "No earlier step was recorded" in alone.stdout


def test_the_table_and_the_curve(tmp_path, of_calls):
    run(["lowp", of_calls.root, "--recipe", "tensorwise,blockwise", "-o", tmp_path / "out"])
    rows = (tmp_path / "out/lowp.csv").read_text().splitlines()
    report = json.loads((tmp_path / "out/lowp.json").read_text())
    assert [plan["name"] for plan in report["plans"]] == ["tensorwise", "blockwise"]
    assert report["plans"][0]["gradients"] == "e5m2"
    assert len(rows) == 1 + sum(len(plan["layers"]) for plan in report["plans"])
    for plan in report["plans"]:
        changes = [point["change"] for point in plan["curve"]]
        assert (
            changes == sorted(changes, reverse=True)
            and changes[-1] == 0
            and plan["curve"][-1]["work_in_bf16"] == pytest.approx(1)
        )


def test_a_dump_of_statistics_says_what_to_record(tmp_path):
    dump = capture(tmp_path, LAYERS.format(times=1, steps=1, scale=1), level="mix", task="statistics")
    result = lowp(dump.root, check=False)
    assert result.returncode == 3 and 'task "tensor"' in result.stderr
    result = run(["lowp", dump.root, "--formats", "fp7"], check=False)
    assert result.returncode == 2 and "mxfp8" in result.stderr


def test_modules_alone_are_enough(tmp_path):
    dump = capture(tmp_path, LAYERS.format(times=1, steps=1, scale=1), level="L0", task="tensor")
    report = json.loads(lowp(dump.root, "--formats", "e4m3").stdout)
    assert sorted(layer["layer"] for layer in report["plans"][0]["layers"]) == ["0", "1"]
    assert report["plans"][0]["ranked_by"] == "loss_change"

"""What compare says of programs as people write them: masks, draws, steps, batches, arguments and buffers."""

import json

import pytest
from capture_helpers import capture
from graph_cases import run


def verdict(target, golden, out, *more):
    command = ["compare", "-tp", target.root, "-gp", golden.root, "-o", out, "--json", *more]
    return json.loads(run(command, check=False).stdout)["verdict"]


def recorded(directory, text, level="mix", task="statistics", **names):
    for name, value in names.items():
        text = text.replace(name, value)
    return capture(directory, text, level=level, task=task)


def of_both(tmp_path, text, names, golden, **config):
    return verdict(
        recorded(tmp_path / "target", text, **config, **names),
        recorded(tmp_path / "golden", text, **config, **golden),
        tmp_path / "out",
    )


def english(said):
    return "\n".join(said["text"]["en"])


MASKED = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out, self.gain = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32), 1.0

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return (x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))) * self.gain

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x

net = Decoder()
net.layers[1].gain = GAIN
x = torch.randn(2, 6, 32)
mask = (1 - torch.tril(torch.ones(6, 6))) * FILL
debugger.start(model=net)
net(x, mask).square().mean().backward()
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("fill", ["-1e4", "-65504.0", "torch.finfo(torch.float32).min"])
def test_a_mask_makes_no_bound_wide(tmp_path, fill):
    said = of_both(tmp_path, MASKED, {"FILL": fill, "GAIN": "1.02"}, {"FILL": fill, "GAIN": "1.0"}, level="L0")
    assert said["origins"][0]["module"] == "layers.1", english(said)
    assert said["origins"][0]["op"] == "Module.layers.1.Layer.forward.0"


FILLED = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.gain = nn.Linear(32, 96), 1

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(-1, -2)).masked_fill(mask == 0, FILL)
        return x + (scores.softmax(-1) @ v) * self.gain

net = nn.ModuleList(Attention() for _ in range(3))
net[1].gain = GAIN
x = torch.randn(2, 6, 32)
mask = torch.tril(torch.ones(6, 6))
debugger.start(model=net)
for layer in net:
    x = layer(x, mask)
x.square().mean().backward()
debugger.stop()
debugger.step()
"""
INF = "float('-inf')"


@pytest.mark.parametrize("fill", ["torch.finfo(torch.float32).min", "-1e4", "-1e9"])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_two_fills_before_a_softmax_are_one(tmp_path, fill, task):
    said = of_both(tmp_path, FILLED, {"FILL": fill, "GAIN": "1.02"}, {"FILL": INF, "GAIN": "1"}, task=task)
    first = said["origins"][0]
    assert (first["cause"], first["module"], first["item"]) == ("argument", "1", "input.1"), english(said)
    assert (first["target"], first["golden"]) == ("1.02", "1")
    assert len(said["origins"]) == 1
    clean = verdict(
        recorded(tmp_path / "clean", FILLED, FILL=fill, GAIN="1", task=task),
        recorded(tmp_path / "inf", FILLED, FILL=INF, GAIN="1", task=task),
        tmp_path,
    )
    assert not clean["origins"], english(clean)


SCALED = """
net = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16)).bfloat16()
x = torch.randn(4, 16).bfloat16()
debugger.start(model=net)
with torch.no_grad():
    y = net[0](x) * 1.01
    net[1](SCALE)
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_nothing_is_stale_by_itself(tmp_path, task):
    said = of_both(tmp_path, SCALED, {"SCALE": "y * 8"}, {"SCALE": "y"}, task=task)
    assert said["origins"][0]["anatomy"]["kind"] == "factor", english(said)
    assert "stale" not in english(said)


POSITIONS = """
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.out = nn.Embedding(30, 16), nn.Embedding(12, 16), nn.Linear(16, 16)

    def forward(self, ids, positions=None):
        if positions is None:
            positions = torch.arange(ids.shape[1])[None] + torch.tensor(0)
        return self.out(self.words(ids) + self.places(positions))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()

    def forward(self, ids, **more):
        return self.body(ids, **more)

net = Model()
ids = torch.randint(0, 30, (2, 8))
given = {"positions": (torch.arange(8)[None] - torch.tensor([[0], [3]])).clamp(min=0)}
debugger.start(model=net)
net(ids, GIVEN).sum().backward()
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("missing", ["", "positions=None"])
def test_a_tensor_that_only_one_run_gives(tmp_path, missing):
    said = of_both(tmp_path, POSITIONS, {"GIVEN": missing}, {"GIVEN": "**given"})
    first = said["origins"][0]
    assert (first["cause"], first["item"]) == ("argument", "input.positions"), english(said)
    assert first["module"] in ("", "body") and first["golden"] == "[2, 8]"
    assert len(said["origins"]) == 1


DROPPED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.drop, self.up = nn.Embedding(50, 64), nn.Dropout(0.1), nn.Linear(64, 64)
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 50)

    def forward(self, x):
        h = self.drop(self.words(x))
        h = h + self.drop(F.gelu(self.up(self.norm(h))))
        HERE
        return self.head(h)

net = Net()
x = torch.randint(0, 50, (4, 12))
torch.manual_seed(SEED)
debugger.start(model=net)
F.cross_entropy(net(x).flatten(0, 1), x.flatten()).backward()
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("level", ["mix", "L0", "L1"])
def test_other_random_numbers_are_no_fault(tmp_path, level):
    said = of_both(tmp_path, DROPPED, {"SEED": "1", "HERE": ""}, {"SEED": "2", "HERE": ""}, level=level)
    assert (said["outcome"], said["origins"]) == ("unknown", []), english(said)
    assert said["not_comparable"][0]["cause"] == "random_draw"
    assert "seed" in english(said) and said["ops"]["bug"] == said["ops"]["suspicious"] == 0


def test_a_fault_behind_other_random_numbers(tmp_path):
    said = of_both(tmp_path, DROPPED, {"SEED": "1", "HERE": "h = h * 1.01"}, {"SEED": "2", "HERE": ""})
    first = said["origins"][0]
    assert first["cause"] == "extra_op" and first["op"].startswith("Tensor.__mul__."), english(said)
    assert first["drawn_before"].startswith("Functional.dropout.0")


def test_a_dropout_that_scales_wrongly_is_no_draw(tmp_path):
    golden = recorded(tmp_path / "golden", DROPPED, SEED="1", HERE="")
    wrong = DROPPED.replace("net = Net()", "plain = F.dropout\nnet = Net()").replace(
        "SEED)", "2)\nnet.drop.forward = lambda x: plain(x, 0.1, True) * 1.4"
    )
    said = verdict(
        recorded(tmp_path / "target", wrong, HERE="", level="L0"),
        recorded(tmp_path / "l0", DROPPED, SEED="1", HERE="", level="L0"),
        tmp_path,
    )
    assert golden and said["origins"][0]["module"] == "drop", english(said)


STEPS = """
net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32), nn.LayerNorm(32), nn.Linear(32, 8))
optimizer = torch.optim.OPTIMIZER
average = [p.detach().clone() for p in net.parameters()]
batches = [(torch.randn(16, 32), torch.randint(0, 8, (16,))) for _ in range(2)]
for x, y in batches:
    debugger.start(model=net)
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    BEFORE
    optimizer.step()
    with torch.no_grad():
        pass
        AFTER
    debugger.stop()
    debugger.step()
"""
ADAM = "AdamW(net.parameters(), lr=1e-3, weight_decay=0.1, foreach=False)"
SGD = "SGD(net.parameters(), lr=1e-2, momentum=0.9, foreach=False)"
AVERAGE = "[a.mul_(0.98).add_(p, alpha=0.02) for a, p in zip(average, net.parameters())]"
AVERAGE_BY_LERP = "[a.lerp_(p, 0.02) for a, p in zip(average, net.parameters())]"
PLAIN = {"BEFORE": "pass", "AFTER": "pass"}


@pytest.mark.parametrize("optimizer", [ADAM, SGD])
def test_scaled_gradients_are_no_decay(tmp_path, optimizer):
    scale = "[p.grad.mul_(0.5) for p in net.parameters()]"
    said = of_both(
        tmp_path, STEPS, {**PLAIN, "OPTIMIZER": optimizer, "BEFORE": scale}, {**PLAIN, "OPTIMIZER": optimizer}
    )
    first = said["origins"][0]
    assert first["cause"] == "extra_op" and first["op"] == "Tensor.mul_.0.forward", english(said)
    assert "decay" not in english(said) and "momentum" not in english(said)


@pytest.mark.parametrize("optimizer", [ADAM, SGD])
@pytest.mark.parametrize("average", [AVERAGE, AVERAGE_BY_LERP], ids=["mul", "lerp"])
def test_an_average_of_the_weights_is_no_setting(tmp_path, optimizer, average):
    said = of_both(
        tmp_path, STEPS, {**PLAIN, "OPTIMIZER": optimizer, "AFTER": average}, {**PLAIN, "OPTIMIZER": optimizer}
    )
    assert not said["origins"], english(said)


def test_a_step_that_runs_twice(tmp_path):
    said = of_both(
        tmp_path, STEPS, {**PLAIN, "OPTIMIZER": ADAM, "AFTER": "optimizer.step()"}, {**PLAIN, "OPTIMIZER": ADAM}
    )
    first = said["origins"][0]
    assert (first["cause"], first["step"]) == ("extra_op", 0), english(said)


BATCH = """
net = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32, eps=EPS), nn.Linear(32, 4))
x = torch.randn(8, 6, 16)
debugger.start(model=net)
for piece in x[SAMPLES].split(SIZE):
    (net(piece).square().mean() * SCALE).backward()
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize(
    ("samples", "words"),
    [(":4", "another batch size"), (":, :3", "another sequence length"), (":4, :3", "another batch")],
)
def test_another_batch_is_no_split(tmp_path, samples, words):
    common = {"EPS": "1e-5", "SIZE": "8", "SCALE": "1"}
    said = of_both(tmp_path, BATCH, {**common, "SAMPLES": samples}, {**common, "SAMPLES": ":"})
    assert words in said["text"]["en"][0] and "split" not in english(said), english(said)
    assert "same batch" in said["text"]["en"][-1]


def test_micro_batches_tell_their_factor(tmp_path):
    common = {"EPS": "1e-5", "SAMPLES": ":", "SCALE": "1"}
    said = of_both(tmp_path, BATCH, {**common, "SIZE": "2"}, {**common, "SIZE": "8"})
    assert said["outcome"] == "unknown" and "gradients are 4 times" in said["text"]["en"][0], english(said)
    right = of_both(tmp_path / "right", BATCH, {**common, "SIZE": "2", "SCALE": "1 / 4"}, {**common, "SIZE": "8"})
    assert "times" not in right["text"]["en"][0], english(right)


def test_a_setting_of_the_call_whose_shape_differs(tmp_path):
    text = """
x = torch.randn(8, 16)
debugger.start()
F.layer_norm(x[SAMPLES], (16,), eps=EPS).square().sum()
debugger.stop()
debugger.step()
"""
    said = of_both(tmp_path, text, {"SAMPLES": ":5", "EPS": "1e-3"}, {"SAMPLES": ":", "EPS": "1e-5"}, level="L1")
    first = said["origins"][0]
    assert (first["cause"], first["item"], first["op"]) == (
        "argument",
        "input.eps",
        "Functional.layer_norm.0.forward",
    ), english(said)


BUFFER = """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 1 / 100 ** (torch.arange(0, 16, 2) / 16), persistent=False)

    def forward(self, x):
        angle = FREQUENCIES
        a, b = x.chunk(2, -1)
        return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)

net = nn.Sequential(nn.Linear(16, 16), Rotary(), nn.Linear(16, 16))
HERE
x = torch.randn(3, 5, 16)
debugger.start(model=net)
net(x).sum().backward()
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize(
    "frequencies",
    ["torch.outer(torch.arange(5).float(), self.inv_freq)", "torch.arange(5)[:, None] * self.inv_freq[None].float()"],
)
def test_a_buffer_has_its_name(tmp_path, frequencies):
    said = of_both(
        tmp_path,
        BUFFER,
        {"FREQUENCIES": frequencies, "HERE": "net[1].inv_freq.mul_(1.5)"},
        {"FREQUENCIES": frequencies, "HERE": ""},
    )
    first = said["origins"][0]
    assert (first["cause"], first["module"], first["parameter"]) == ("weight", "1", "inv_freq"), english(said)
    assert "buffer inv_freq" in said["text"]["en"][0] and len(said["origins"]) == 1


WRAPPED = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.query, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.query(x) + self.down(F.gelu(self.up(self.norm(x))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.head = nn.Embedding(50, 32), nn.ModuleList(Layer() for _ in range(3)), nn.Linear(32, 50)

    def forward(self, x):
        x = self.words(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.base_model = nn.Module()
        self.base_model.model = model

    def forward(self, x):
        return self.base_model.model(x)

class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base_layer, self.lora_A, self.lora_B = base, nn.Linear(32, 4, bias=False), nn.Linear(4, 32, bias=False)

    def forward(self, x):
        return self.base_layer(x) + 2 * self.lora_B(self.lora_A(x))

class Quantised(nn.Module):
    def __init__(self, base, factor=1):
        super().__init__()
        scale = base.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("qweight", (base.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scales", scale * factor)
        self.register_buffer("bias", base.bias.detach())

    def forward(self, x):
        return F.linear(x, self.qweight.float() * self.scales, self.bias)

net = Model()
x = torch.randint(0, 50, (2, 9))
adapted = [Adapted(layer.query) for layer in net.layers]
with torch.no_grad():
    HERE
debugger.start(model=net)
F.cross_entropy(net(x).flatten(0, 1), x.flatten()).backward()
debugger.stop()
debugger.step()
"""
MERGED = "[a.base_layer.weight.add_(2 * a.lora_B.weight @ a.lora_A.weight) for a in adapted]"
WRAP = "net = Wrapper(net)"
ADAPT = "[setattr(layer, 'query', a) for layer, a in zip(net.layers, adapted)]\n    net = Wrapper(net)"
QUANTISED = "[setattr(layer, 'up', Quantised(layer.up, 1.2 if i == BAD else 1)) for i, layer in enumerate(net.layers)]"
SPOILT = "net.layers[1].down.weight.mul_(1.05)"


@pytest.mark.parametrize(
    ("target", "golden"),
    [(WRAP, "pass"), ("pass", WRAP), (ADAPT, MERGED), (MERGED, ADAPT), (QUANTISED.replace("BAD", "-1"), "pass")],
    ids=["wrapped", "golden wrapped", "adapters", "merged", "quantised"],
)
def test_the_same_model_in_other_modules(tmp_path, target, golden):
    said = of_both(tmp_path, WRAPPED, {"HERE": target}, {"HERE": golden})
    assert not said["origins"] and said["outcome"] == ("equal" if WRAP in (target, golden) else "round_off"), english(
        said
    )


@pytest.mark.parametrize(("target", "golden"), [(WRAP, "pass"), (ADAPT, MERGED)], ids=["wrapped", "adapters"])
def test_a_fault_in_other_modules(tmp_path, target, golden):
    said = of_both(tmp_path, WRAPPED, {"HERE": SPOILT + "\n    " + target}, {"HERE": golden})
    first = said["origins"][0]
    assert (first["cause"], first["parameter"]) == ("weight", "weight"), english(said)
    assert first["module"] == "base_model.model.layers.1.down" and len(said["origins"]) == 1


def test_a_fault_in_a_quantised_module(tmp_path):
    said = of_both(tmp_path, WRAPPED, {"HERE": QUANTISED.replace("BAD", "1")}, {"HERE": "pass"})
    assert said["origins"][0]["module"] == "layers.1.up", english(said)


MOVED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        EARLY
        y = self.a(x)
        LATE
        z = self.b(y) * m
        HERE
        return self.c(z)

net = Net()
x = torch.randn(4, 16)
debugger.start(model=net)
net(x).sum().backward()
debugger.stop()
debugger.step()
"""
GATE = "m = torch.tanh(x)"


def test_a_function_that_moved_is_not_the_fault(tmp_path):
    golden = {"EARLY": "", "LATE": GATE, "HERE": ""}
    said = of_both(tmp_path, MOVED, {"EARLY": GATE, "LATE": "", "HERE": "z = z * 1.01"}, golden)
    assert said["origins"][0]["op"].startswith("Tensor.__mul__."), english(said)
    clean = of_both(tmp_path / "clean", MOVED, {"EARLY": GATE, "LATE": "", "HERE": ""}, golden)
    assert not clean["origins"], english(clean)


def test_mistakes_come_before_any_verdict(tmp_path):
    dump = recorded(tmp_path / "run", STEPS, **{**PLAIN, "OPTIMIZER": ADAM})

    def of_steps(a, b):
        command = [
            "compare",
            "-tp",
            dump.root / f"step{a}",
            "-gp",
            dump.root / f"step{b}",
            "-o",
            tmp_path / "out",
            "--json",
        ]
        return json.loads(run(command, check=False).stdout)["verdict"]

    said = of_steps(1, 0)
    assert (said["outcome"], said["mistake"], said["origins"]) == ("unknown", "other_step", []), english(said)
    assert "step 1" in said["text"]["en"][0] and "step 0" in said["text"]["zh"][0]
    same = of_steps(1, 1)
    assert (same["outcome"], same["mistake"]) == ("equal", "same_path") and "same dump" in same["text"]["en"][0]

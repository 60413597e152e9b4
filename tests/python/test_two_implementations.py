"""Two programs for one model, of other classes, names and functions, without a mapping: tables and graphs say the same."""

import json

import pytest
from graph_cases import run
from launch import run_python

PROGRAMS = """
import json, sys, torch
from torch import nn
from msprobe.pytorch import PrecisionDebugger

HIDDEN, LAYERS = 16, 3


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class OneMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(HIDDEN, 32), nn.Linear(32, HIDDEN)

    def forward(self, x):
        return self.fc2(nn.functional.silu(self.fc1(x)))


class OneLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre_norm, self.feed = Norm(), OneMlp()

    def forward(self, x):
        return x + self.feed(self.pre_norm(x))


class OneBody(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(OneLayer() for _ in range(LAYERS))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class OneModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.decoder, self.head = nn.Embedding(20, HIDDEN), OneBody(), nn.Linear(HIDDEN, 20)

    def forward(self, ids):
        return self.head(self.decoder(self.words(ids)))


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return self.scale * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6))


class Expand(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(HIDDEN, 32), nn.Linear(32, HIDDEN)

    def forward(self, x):
        h = self.up(x)
        return self.down(h * torch.sigmoid(h))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.mlp = RootMeanSquare(), Expand()

    def forward(self, x):
        return torch.add(self.mlp(self.ln(x)), x)


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, HIDDEN)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, ids):
        x = self.embed(ids).transpose(0, 1).contiguous().transpose(0, 1) * 1.0
        for block in self.h:
            x = block(x)
        return x


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer, self.lm_head = Stack(), nn.Linear(HIDDEN, 20)

    def forward(self, ids):
        return self.lm_head(self.transformer(ids))


name = sys.argv[1]
model = OneModel() if name == "one" else Other()
torch.manual_seed(0)
for parameter in model.parameters():  # in one order in both
    parameter.data.copy_(torch.randn(parameter.shape) * 0.3)
if name == "wrong":
    model.transformer.h[1].mlp.down.weight.data.mul_(1.5)
config = {"task": "statistics", "level": "mix", "dump_path": name, "rank": [], "step": []}
config["statistics"] = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
open(f"{name}.json", "w").write(json.dumps(config))
debugger = PrecisionDebugger(config_path=f"{name}.json")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
debugger.start(model=model)
model(torch.arange(12).view(2, 6)).logsumexp(-1).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
optimizer.step()
debugger.stop()
debugger.step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "programs.py").write_text(PROGRAMS, encoding="utf-8")
    for name in ("one", "other", "wrong"):
        run_python([folder / "programs.py", name], cwd=folder)
    return folder


def verdict(command, recorded, target, golden, out):
    paths = ["-tp", recorded / target / "step0", "-gp", recorded / golden / "step0", "-o", out]
    return json.loads(run([command, *paths, "--json"]).stdout)["verdict"]


@pytest.mark.parametrize("command", ["compare", "graph_visualize"])
@pytest.mark.parametrize("names", [("one", "other"), ("other", "one")])
def test_equal_weights_say_nothing(recorded, tmp_path, command, names):
    said = verdict(command, recorded, *names, tmp_path)
    assert said["outcome"] == "round_off" and not said["origins"], said["text"]["en"]


@pytest.mark.parametrize("command", ["compare", "graph_visualize"])
def test_a_weight_that_differs_is_the_origin(recorded, tmp_path, command):
    said = verdict(command, recorded, "wrong", "one", tmp_path)
    assert said["origins"][0]["module"] == "transformer.h.1.mlp.down", said["text"]["en"]


@pytest.mark.parametrize("target", ["one", "wrong"])
def test_the_graph_judges_what_the_table_judges(recorded, tmp_path, target):
    golden = "other" if target == "one" else "one"
    table, graph = (verdict(command, recorded, target, golden, tmp_path) for command in ("compare", "graph_visualize"))
    assert (graph["ops"], graph["one_sided_modules"]) == (table["ops"], table["one_sided_modules"])
    assert graph["text"] == table["text"]

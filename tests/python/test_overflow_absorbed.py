"""Infinities that a healthy model makes and nothing uses, beside real faults: T5 takes the logarithm of zero for the buckets of
its relative positions and casts it to integers."""

import json

import pytest
from capture_helpers import capture
from graph_cases import run

pytest.importorskip("transformers")

T5 = """
from transformers import T5Config, T5EncoderModel

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = dict(vocab_size=40, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4, dropout_rate=0.0)
        self.encoder = T5EncoderModel(T5Config(**sizes))
        self.head = nn.Linear(16, 8)

    def forward(self, ids):
        z = self.head(self.encoder(input_ids=ids).last_hidden_state.mean(1))
        apart = ((z[:, None] - z[None]) ** 2).sum(-1)
        near = torch.sqrt(apart[torch.triu(torch.ones(4, 4), 1) > 0])
        return z.pow(2).mean() + 1 / (1 + near.mean())

model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    ids = torch.randint(1, 40, (4, 16), generator=torch.Generator().manual_seed(step))
    if step == SAME:
        ids[3] = ids[1]
    debugger.start(model=model)
    optimizer.zero_grad()
    model(ids).backward()
    debugger.stop()
    optimizer.step()
    if step == FLIP - 1:
        model.encoder.encoder.block[1].layer[1].DenseReluDense.wo.weight.data[3, 7] = float("inf")
    debugger.step()
"""


def plant(directory, same=-1, flip=-1):
    body = T5.replace("SAME", str(same)).replace("FLIP", str(flip))
    return capture(directory, body, level="mix", step=[0, 1, 2, 3]).root


def report_of(path, out):
    return json.loads(run(["overflow_check", "-i", path, "-o", out, "--json"]).stdout)


def test_a_healthy_model_is_looked_at_to_its_end_and_no_bug_is_told(tmp_path):
    dump = plant(tmp_path)
    report = report_of(dump, tmp_path / "out")
    (finding,) = report["first"]
    assert report["steps"] == 4 and finding["absorbed"] and finding["ops"][0]["op"] == "Torch.log.0.forward"
    links = finding["links"]
    assert (links["same_shape"], links["by_order"]) == (0, 0)
    done = run(["overflow_check", "-i", dump, "-o", tmp_path / "out", "--exit_code"])
    assert "an infinity that nothing uses: it takes the logarithm of zero" in done.stdout
    assert "Origin" not in done.stdout and "anomaly node" not in done.stdout


def test_the_gradient_of_a_root_at_zero_is_the_origin(tmp_path):
    report = report_of(plant(tmp_path, same=2), tmp_path / "out")
    (finding,) = report["first"]
    assert report["step"] == "step2" and finding["ops"][0]["op"] == "Torch.sqrt.0.backward"
    assert finding["why"].startswith("the gradient of sqrt at zero is infinite")
    assert [f["ops"][0]["op"] for f in report["absorbed"]] == ["Torch.log.0.forward"]


def test_an_infinite_weight_is_the_origin(tmp_path):
    dump = plant(tmp_path, flip=2)
    for path in (dump, dump / "step2"):
        report = report_of(path, tmp_path / "out")
        (finding,) = report["first"]
        assert report["step"] == "step2" and finding["kind"] == "parameter"
        assert finding["ops"][0]["op"].endswith("block.1.layer.1.DenseReluDense.wo.Linear.forward.0")
        assert "in step1 it was clean" in finding["why"]


@pytest.mark.parametrize("form, lines", [(["nan_analyze"], 0), (["-f", "pytorch", "nan_analyze"], 1)])
def test_lines_of_the_earlier_tool_stand_under_its_form_only(form, lines, tmp_path):
    dump = capture(tmp_path, "debugger.start()\ntorch.ones(2).mul(2)\ndebugger.stop()\n", level="L1").root
    out = run([*form, "-i", dump, "-o", tmp_path / "out"]).stdout
    for when in ("before", "during", "after"):
        assert out.count(f"Start searching anomaly node {when} communication.") == lines
    assert out.endswith("Cannot find any anomaly node, no need to generate analyze file.\n")

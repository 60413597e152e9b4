"""Capture, monitor and laboratory on a CUDA device; skipped where there is none."""

import csv
import glob
import json
import math
import os
import subprocess
import sys

import pytest
import torch
from capture_helpers import capture
from conftest import REPO
from test_device_path import ZOO, close, items_of
from test_monitor import HEAD
from test_monitor_parts import DEVICE

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

EARLY = f"""
import os, hashlib
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
sys.path.insert(0, {str(REPO / "tests" / "python")!r})
import monitor_scenario as scenario
torch.use_deterministic_algorithms(True)

def training():
    torch.manual_seed(5)
    model = scenario.Model().to("cuda")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

def step(model, optimizer):
    tokens = torch.arange(12, device="cuda").view(2, 6)
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

def digest(model, losses):
    text = hashlib.sha256()
    for tensor in (*model.parameters(), torch.stack(losses), torch.cuda.get_rng_state()):
        text.update(tensor.detach().cpu().view(torch.uint8).numpy().tobytes())
    return text.hexdigest()
"""
TRAIN = """
model, optimizer = training()
losses = []
for number in range(4):
    if {captured}:
        debugger.start(model=model)
    losses.append(step(model, optimizer).detach())
    if {captured}:
        debugger.stop()
        debugger.step()
print("DIGEST", digest(model, losses))
"""


def last(dump, word):
    return dump.script.stdout.rsplit(word, 1)[1].split()[0]


@pytest.mark.parametrize("section", [{}, {"summary_mode": "md5"}], ids=["statistics", "md5"])
def test_a_training_keeps_its_bits(tmp_path, section):
    found = [
        capture(tmp_path / str(on), TRAIN.format(captured=on), early=EARLY, level="mix", section=section)
        for on in (True, False)
    ]
    assert last(found[0], "DIGEST") == last(found[1], "DIGEST")
    assert len(found[0].data(3)) > 100


def tensors_in(value):
    if isinstance(value, dict):
        if "Max" in value:
            yield value
            return
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from tensors_in(part)


def test_statistics_are_those_of_the_tensors(tmp_path):
    """Two dumps of one deterministic training: what the device computed, and the tensors themselves."""
    body = TRAIN.format(captured=True)
    statistics = capture(tmp_path / "s", body, early=EARLY, level="mix")
    saved = capture(tmp_path / "t", body, early=EARLY, level="mix", task="tensor")
    assert last(statistics, "DIGEST") == last(saved, "DIGEST")
    count = 0
    for name, entry in statistics.data(2).items():
        for got, kept in zip(tensors_in(entry), tensors_in(saved.data(2)[name]), strict=True):
            tensor = torch.load(saved.directory(2) / "dump_tensor_data" / kept["data_name"], weights_only=True)
            wide = tensor.double()
            assert got["Max"] == wide.max().item() and got["Min"] == wide.min().item(), name
            assert math.isclose(got["Norm"], wide.norm().item(), rel_tol=1e-9), name
            assert abs(got["Mean"] - wide.mean().item()) <= 1e-9 * wide.abs().mean().item(), name
            count += 1
    assert count > 300


def test_values_of_every_type(tmp_path):
    on_device = ZOO.replace("for x in tensors:\n    zoo.op(x)", "for x in tensors:\n    zoo.op(x.to('cuda'))")
    assert on_device != ZOO
    dump, host = (capture(tmp_path / str(number), body) for number, body in enumerate((on_device, ZOO)))
    found, expected = items_of(dump), items_of(host)
    wrong = [
        (item, other)
        for item, other in zip(found, expected, strict=True)
        if not all(close(item[key], other[key], 0 if key in ("Max", "Min") else 1e-6) for key in ("Max", "Min", "Norm"))
    ]
    assert not wrong and len(found) > 60, wrong


@pytest.mark.parametrize("together", [4, 1000], ids=["together", "alone"])
def test_statistics_of_the_monitor_of_every_type(run_script, together):
    on_device = DEVICE.replace("list(cases.values())", "[t.to('cuda') for t in cases.values()]")
    assert on_device != DEVICE
    done = run_script(HEAD + f"TOGETHER = {together}\n" + on_device)
    assert done.returncode == 0, done.stderr


def test_nothing_waits_while_a_step_is_recorded(tmp_path):
    body = """
model, optimizer = training()
step(model, optimizer)
for number in range(2):
    debugger.start(model=model)
    torch.cuda.set_sync_debug_mode("error" if number else "default")  # the first makes buffers
    step(model, optimizer)
    torch.cuda.set_sync_debug_mode("default")
    debugger.stop()
    debugger.step()
"""
    dump = capture(tmp_path, body, early=EARLY, level="mix")
    assert all(item["Max"] is not None for entry in dump.data(1).values() for item in tensors_in(entry))


def test_streams_and_graphs(tmp_path):
    body = """
x = torch.randn(256, 256, device="cuda")
side = torch.cuda.Stream()
debugger.start()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x
    for _ in range(20):
        y = torch.matmul(y, x) / 16
    z = torch.mul(y, 2)
torch.cuda.current_stream().wait_stream(side)
debugger.stop()
debugger.step()
print("LARGEST", z.max().item())
graph, still = torch.cuda.CUDAGraph(), torch.ones(8, device="cuda")
debugger.start()
with torch.cuda.graph(graph):
    out = torch.add(still, 1)
graph.replay()
debugger.stop()
debugger.step()
print("REPLAYED", out.sum().item())
"""
    dump = capture(tmp_path, body)
    data = dump.data()
    (largest,) = [entry["output"][0]["Max"] for name, entry in data.items() if name.startswith("Torch.mul.")][-1:]
    assert largest == float(last(dump, "LARGEST"))
    assert last(dump, "REPLAYED") == "16.0"
    assert "while a graph of the device was captured" in dump.script.stderr


MONITOR = """
import warnings
from msprobe.pytorch import TrainerMon

json.dump({"targets": {}, "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
           "param_distribution": True, "ur_distribution": True, "input_distribution": True,
           "ops": ["norm", "min", "max", "mean", "nans", "zeros"], "ndigits": 20}, open("monitor.json", "w"))
os.environ["MONITOR_OUTPUT_DIR"] = "monitor"
model, optimizer = training()
monitor = TrainerMon("monitor.json", params_have_main_grad=False) if WATCHED else None
if monitor:
    monitor.set_monitor(model, optimizer)
losses, waits, truth = [], [], {}
for number in range(4):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn" if number > 1 else "default")
        tokens = torch.arange(12, device="cuda").view(2, 6)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        in_passes = len(caught)
        torch.cuda.set_sync_debug_mode("default")
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        torch.cuda.set_sync_debug_mode("warn" if number > 1 else "default")
        optimizer.step()
        torch.cuda.set_sync_debug_mode("default")
        waits.append((in_passes, len(caught) - in_passes))
        for one in caught:
            print(one.filename.rpartition("/")[2], one.lineno, str(one.message)[:80])
    truth = {name: [before[name].double().norm().item(), p.grad.double().norm().item(), p.double().mean().item(),
                    (p.double() - before[name].double()).norm().item()] for name, p in model.named_parameters()}
    optimizer.zero_grad()
    losses.append(loss.detach())
json.dump(truth, open("truth.json", "w"))
json.dump(waits, open("waits.json", "w"))
print("DIGEST", digest(model, losses))
"""


def monitored(directory, watched):
    return capture(directory, f"WATCHED = {watched}\n" + MONITOR, early=EARLY)


@pytest.fixture(scope="module")
def with_monitor(tmp_path_factory):
    root = tmp_path_factory.mktemp("monitor")
    return root, monitored(root, True)


def rows(root, table, step=3):
    (path,) = glob.glob(f"{root}/monitor/*-rank0-*/{table}_{step}-{step}.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_a_monitored_training_keeps_its_bits(tmp_path, with_monitor):
    assert last(with_monitor[1], "DIGEST") == last(monitored(tmp_path, False), "DIGEST")
    assert " it ends here" not in with_monitor[1].script.stderr


def test_values_of_the_monitor_are_those_of_float64(with_monitor):
    root, _ = with_monitor
    truth = json.loads((root / "truth.json").read_text())
    before, after, gradients, updates = (
        rows(root, table) for table in ("param_origin", "param_updated", "grad_reduced", "param_update")
    )
    assert set(before) == set(truth) and len(truth) > 20
    for name, (norm, gradient, mean, update) in truth.items():
        assert math.isclose(float(before[name]["norm"]), norm, rel_tol=1e-6)
        assert math.isclose(float(gradients[name]["norm"]), gradient, rel_tol=1e-6)
        assert math.isclose(float(updates[name]["norm"]), update, rel_tol=1e-5)
        assert math.isclose(float(updates[name]["ratio"]), update / norm, rel_tol=1e-5) if norm else True
        assert abs(float(after[name]["mean"]) - mean) <= 2e-6 * norm
    assert len(rows(root, "actv")) > 20


def test_the_monitor_waits_once_a_step(with_monitor):
    """One copy fetches what a step has; forward and backward never wait."""
    root, dump = with_monitor
    waits = json.loads((root / "waits.json").read_text())[2:]
    assert all(in_passes == 0 and at_the_end <= 1 for in_passes, at_the_end in waits), dump.script.stdout


def test_the_laboratory_calls_on_the_device(tmp_path):
    body = """
x, w = torch.randn(64, 32), torch.randn(16, 32)
x, w = x.to("cuda").requires_grad_(), w.to("cuda").requires_grad_()
debugger.start()
F.softmax(F.gelu(F.linear(x, w)), -1).square().sum().backward()
debugger.stop()
debugger.step()
"""
    dump = capture(tmp_path, body, task="tensor")
    command = os.environ.get("MSPROBE_BIN", os.path.join(os.path.dirname(sys.executable), "msprobe"))
    api = ["-api_info", dump.directory() / "dump.json"]
    for arguments in (["acc_check", *api, "-o", tmp_path / "acc"], ["lab", dump.directory() / "dump.json"]):
        done = subprocess.run(
            [command, *map(str, arguments), "-d", "0", "--json"],
            capture_output=True,
            text=True,
            env={**os.environ, "MSPROBE_PYTHON": sys.executable},
        )
        assert done.returncode in (0, 1), done.stderr
        report = json.loads(done.stdout)
        assert "cuda" in json.dumps(report), report


def test_products_in_tf32_are_called_by_their_name(tmp_path):
    body = """
torch.backends.cudnn.allow_tf32 = False
x, w = torch.randn(4, 64, 16, 16), torch.randn(64, 64, 3, 3)
debugger.start()
F.conv2d(x.to("cuda"), w.to("cuda"))
debugger.stop()
debugger.step()
"""
    dump = capture(tmp_path, body, task="tensor")
    command = os.environ.get("MSPROBE_BIN", os.path.join(os.path.dirname(sys.executable), "msprobe"))
    known = {}
    for allowed in (True, False):
        site = tmp_path / f"site{allowed}"
        site.mkdir()
        (site / "sitecustomize.py").write_text(f"import torch\ntorch.backends.cudnn.allow_tf32 = {allowed}\n")
        done = subprocess.run(
            [command, "acc_check", "-api_info", dump.directory() / "dump.json", "-o", tmp_path / f"out{allowed}"]
            + ["-d", "0", "--json"],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "MSPROBE_PYTHON": sys.executable,
                "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
            },
        )
        assert done.returncode in (0, 1), done.stderr
        with open(json.loads(done.stdout)["float64"], encoding="utf-8-sig", newline="") as file:
            (known[allowed],) = [row for row in csv.DictReader(file) if "conv2d" in row["API Name"]]
    assert "TF32" in known[True]["Known"] and known[True]["Verdict"] in ("suspicious", "wrong"), known
    assert known[False]["Known"] == "" and known[False]["Verdict"] in ("right", "round-off"), known

"""Task grad_probe: files, columns and numbers, and that the training stays what it is."""

import csv
import shutil
import zlib

import numpy as np
import pytest
from capture_helpers import capture_each

BODY = """
torch.manual_seed(3)
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
debugger.monitor(net)
gradients = {}
for step in range(3):
    debugger.start(net)
    net(torch.ones(2, 4)).sum().backward()
    debugger.stop(); debugger.step()
    gradients.update({f"{step}/{name}": p.grad.clone() for name, p in net.named_parameters()})
    optimizer.step()
    optimizer.zero_grad()
torch.save(gradients, "gradients.pt")
torch.save(net.state_dict(), "trained.pt")
assert not any(hasattr(module, "_msprobe") or module._forward_hooks for module in net.modules())
"""
SECTIONS = [
    {"grad_level": "L0"},
    {"grad_level": "L1", "param_list": ["2."]},
    {"grad_level": "L2", "bounds": [-0.5, 0, 0.5]},
]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    configs = [{"task": "grad_probe", "section": section, "step": [0, 2]} for section in SECTIONS]
    return capture_each(tmp_path_factory.mktemp("probe"), BODY, [*configs, {"step": [9]}])


def rows(dump, step):
    with open(dump.root / "rank0" / f"grad_summary_{step}.csv", newline="", encoding="utf-8-sig") as file:
        header, *lines = csv.reader(file)
    return header, {line[0]: dict(zip(header, line)) for line in lines}


def test_tables_hold_the_gradients(dumps):
    import torch

    for dump, section in zip(dumps, SECTIONS):
        assert sorted(p.name for p in (dump.root / "rank0").glob("*.csv")) == [
            "grad_summary_0.csv",
            "grad_summary_2.csv",
        ]
        gradients = torch.load(dump.root.parent / "gradients.pt", weights_only=True)
        header, lines = rows(dump, 2)
        wanted = [
            name[2:] for name in gradients if name.startswith("2/") and section.get("param_list", [""])[0] in name
        ]
        assert list(lines) == wanted
        for name, line in lines.items():
            gradient = gradients[f"2/{name}"]
            assert float(line["max"]) == gradient.max() and float(line["min"]) == gradient.min()
            assert float(line["norm"]) == pytest.approx(gradient.double().norm().item(), rel=1e-6)
            assert line["shape"] == str(list(gradient.shape))
            if section["grad_level"] == "L0":
                assert line["MD5"] == f"{zlib.crc32(gradient.float().numpy().tobytes()):08x}"
            else:
                signs = np.load(dump.root / "rank0" / "step2" / f"{name}.npy")
                assert signs.dtype == bool and (signs == (gradient > 0).numpy()).all()
    header, lines = rows(dumps[2], 0)
    assert header == [
        "param_name",
        "(-inf, -0.5]",
        "(-0.5, 0]",
        "(0, 0.5]",
        "(0.5, inf)",
        "=0",
        "max",
        "min",
        "norm",
        "shape",
    ]
    for line in lines.values():
        assert sum(float(line[column]) for column in header[1:5]) == pytest.approx(1.0)
    assert rows(dumps[0], 0)[0] == ["param_name", "MD5", "max", "min", "norm", "shape"]
    assert not list((dumps[0].root / "rank0").glob("step*"))


def test_the_training_is_the_same_with_and_without(dumps):
    import torch

    trained = [torch.load(dump.root.parent / "trained.pt", weights_only=True) for dump in dumps]
    for name in trained[0]:
        assert all(torch.equal(trained[-1][name], state[name]) for state in trained)


def compared(first, second, out):
    from msprobe.core.grad_probe.grad_compare import GradComparator

    GradComparator.compare_distributed(str(first), str(second), str(out))
    with open(out / "rank0" / "similarities.csv", newline="", encoding="utf-8-sig") as file:
        head, *lines = csv.reader(file)
    return head, {line[0]: [float(value) for value in line[1:]] for line in lines}


def test_signs_of_two_trainings_are_compared(dumps, tmp_path):
    head, same = compared(dumps[2].root, dumps[2].root, tmp_path / "same")
    assert head == ["step", "0", "2"]
    assert list(same) == ["0.weight", "0.bias", "2.weight", "2.bias", "summary"]
    assert all(values == [1.0, 1.0] for values in same.values())
    pictures = sorted(path.name for path in (tmp_path / "same" / "rank0" / "similarities_picture").iterdir())
    assert len(pictures) == 5 and pictures[-1].startswith("summary_similarities.")

    other = tmp_path / "other"
    shutil.copytree(dumps[2].root, other)
    path = other / "rank0" / "step2" / "0.weight.npy"
    signs = np.load(path)
    signs.flat[:3] ^= True
    np.save(path, signs)
    _, differ = compared(dumps[2].root, other, tmp_path / "differ")
    assert differ["0.weight"] == [1.0, 9 / 12] and differ["0.bias"] == [1.0, 1.0]
    assert differ["summary"] == [1.0, 1 - 3 / (12 + 3 + 3 + 1)]


def test_suspicious_steps_are_named():
    from msprobe.core.grad_probe.grad_compare import problems

    assert problems([0.96, 0.96, 0.9], [0, 5, 9]) == [
        "step 0: similarity 0.9600, below 0.97",
        "step 9: similarity falls from 0.9600 to 0.9000",
    ]
    assert problems([0.97, 0.945], [0, 1]) == []


def test_what_does_not_fit_is_refused(dumps, tmp_path):
    from msprobe.core.grad_probe.grad_compare import GradComparator

    def refused(kind, text, change):
        other = tmp_path / text.replace(" ", "_")
        shutil.copytree(dumps[2].root, other)
        change(other / "rank0")
        with pytest.raises(kind, match=text):
            GradComparator.compare_distributed(str(dumps[2].root), str(other), str(tmp_path / "out"))

    signs = "step0/0.bias.npy"
    refused(RuntimeError, "no step in common", lambda rank: [shutil.rmtree(rank / f"step{n}") for n in (0, 2)])
    refused(RuntimeError, "does not exist", lambda rank: (rank / signs).unlink())
    refused(RuntimeError, "have the shapes", lambda rank: np.save(rank / signs, np.zeros(9, bool)))
    refused(TypeError, "and no signs", lambda rank: np.save(rank / signs, np.zeros(3)))
    refused(ValueError, "is not an .npy file", lambda rank: (rank / signs).write_bytes(b"text"))
    refused(ValueError, "is cut off", lambda rank: (rank / signs).write_bytes((rank / signs).read_bytes()[:-1]))


@pytest.mark.parametrize(
    ("key", "value"), [("grad_level", "L3"), ("param_list", "fc"), ("bounds", [1, 0]), ("bounds", [])]
)
def test_wrong_values_are_named(tmp_path, key, value):
    import json

    from msprobe._capture.config import MsprobeException, load_config

    path = tmp_path / "config.json"
    path.write_text(json.dumps({"task": "grad_probe", "dump_path": "/d", "grad_probe": {key: value}}, indent=1))
    with pytest.raises(MsprobeException, match=f"{key} is .*; allowed: .*config.json, line 5\\)$"):
        load_config(str(path))

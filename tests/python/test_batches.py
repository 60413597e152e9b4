"""msprobe run --save-batches and its kin: what one script gets, another gets, too, and the saving changes no bit."""

import csv
import math
import struct
import subprocess
import sys

import numpy as np
import pytest
from graph_cases import find_command
from test_run_command import run

LOOP = """
import sys
import torch
from torch import nn

kind, seed, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(5), torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
draw = torch.Generator().manual_seed(seed)
data, target = torch.randn(40, 6, generator=draw), torch.randint(0, 3, (40,), generator=draw)
weights = torch.rand(40, generator=draw)

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, n):
        return {"inputs": {"x": data[n]}, "labels": target[n], "extra": (weights[n], "text")}

def own_iterator():
    for n in range(0, 40, size):
        yield data[n:n + size], target[n:n + size], weights[n:n + size]

def step(batches):
    for x, labels, mask in batches:
        losses = nn.functional.cross_entropy(model(x), labels, reduction="none")
        loss = (losses * mask).sum()
        loss.backward()
        print(loss.item().hex())
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()

if kind == "loader":
    loader = torch.utils.data.DataLoader(Samples(), batch_size=size, shuffle=True, generator=draw)
    found = iter([(b["inputs"]["x"], b["labels"], b["extra"][0]) for b in loader])
else:
    found = own_iterator()
for _ in range(2):
    step([next(found), next(found)])
print(sum(p.double().sum() for p in model.parameters()).item().hex(), data.sum().item())
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A directory with the script and what it saves from its loader: batches and gradients."""
    directory = tmp_path_factory.mktemp("batches")
    (directory / "loop.py").write_text(LOOP)
    program = [sys.executable, "loop.py", "loader", "1", "4"]
    done = run(program, "--save-batches", "batches", "--save-grads", "grads", cwd=directory)
    assert done.returncode == 0, done.stderr
    (directory / "printed").write_text(done.stdout)
    return directory


def read(path):
    from safetensors.numpy import load_file

    return load_file(path)


def test_what_is_saved(saved):
    plain = subprocess.run([sys.executable, "loop.py", "loader", "1", "4"], cwd=saved, capture_output=True, text=True)
    assert plain.stdout == (saved / "printed").read_text()
    names = sorted(str(path.relative_to(saved)) for path in saved.rglob("*.safetensors"))
    assert names == [
        f"{kind}/step_{step}/rank_0/{file}.safetensors"
        for kind, files in (("batches", ("batch", "batch_1")), ("grads", ("grads",)))
        for step in (0, 1)
        for file in files
    ]
    batch = read(saved / "batches/step_0/rank_0/batch_1.safetensors")
    assert {name: array.shape for name, array in batch.items()} == {"inputs.x": (4, 6), "labels": (4,), "extra.0": (4,)}
    grads = read(saved / "grads/step_1/rank_0/grads.safetensors")
    with (saved / "grads/step_1/rank_0/grads_norm.csv").open() as file:
        rows = list(csv.reader(file))
    root, squared, before = (rows[0].index(name) for name in rows[0] if "(" in name)
    for row in rows[1:5]:
        norm = float(np.linalg.norm(grads[row[0]].astype(np.float64)))
        assert math.isclose(float(row[root]), norm) and math.isclose(float(row[squared]), norm**2)
        assert float(row[before]) > norm
    assert math.isclose(float(rows[5][root]), 0.5, rel_tol=1e-5) and rows[6][0].startswith("loss scale")


def test_only_the_steps_of_step_are_saved(saved, tmp_path):
    program = [sys.executable, saved / "loop.py", "loader", "1", "4"]
    options = ["--save-batches", tmp_path / "batches", "--save-grads", tmp_path / "grads", "--step", "1"]
    done = run(program, *options, cwd=saved)
    assert done.returncode == 0, done.stderr
    for kind in ("batches", "grads"):
        assert [path.name for path in (tmp_path / kind).iterdir()] == ["step_1"]
        names = sorted(path.name for path in (saved / kind / "step_1/rank_0").iterdir())
        assert sorted(path.name for path in (tmp_path / kind / "step_1/rank_0").iterdir()) == names
    first = read(saved / "batches/step_1/rank_0/batch.safetensors")
    again = read(tmp_path / "batches/step_1/rank_0/batch.safetensors")
    assert all((first[name] == again[name]).all() for name in first)


def test_another_script_gets_the_same(saved):
    """From its own iterator, whose labels and masks are variables; and from .npy files of the guide's layout."""
    program = [sys.executable, "loop.py", "own", "2", "4"]
    (saved / "names.yaml").write_text(
        'pairs:\n  - a: "inputs.x"\n    b: "x"\n  - a: labels\n    b: labels\n  - a: extra.0\n    b: mask\n'
    )
    done = run(program, "--replay-batches", "batches", "--names", "names.yaml", cwd=saved)
    assert done.returncode == 0, done.stderr
    expected = (saved / "printed").read_text().split()
    assert done.stdout.split()[:5] == expected[:5] and done.stdout.split()[5] != expected[5]

    for number, (step, file) in enumerate([(0, "batch"), (0, "batch_1"), (1, "batch"), (1, "batch_1")]):
        directory = saved / "arrays" / f"step_{number}" / "rank_0"
        directory.mkdir(parents=True)
        for name, array in read(saved / f"batches/step_{step}/rank_0/{file}.safetensors").items():
            np.save(directory / f"{ {'inputs.x': 'x', 'extra.0': 'mask'}.get(name, name) }.npy", array)
    done = run(program, "--replay-batches", "arrays", "--replay-grads", "grads", cwd=saved)
    assert done.stdout.split()[:5] == expected[:5], done.stderr

    shown = subprocess.run(
        [find_command(), "ckpt", "compare", "batches", "batches", "--json"], cwd=saved, capture_output=True, text=True
    )
    assert shown.returncode == 0 and '"step_0/rank_0/1/inputs.x"' in shown.stdout


def test_another_shape_ends_the_script(saved):
    done = run([sys.executable, "loop.py", "loader", "1", "5"], "--replay-batches", "batches", cwd=saved)
    assert done.returncode == 3 and "inputs.x has the shape [4, 6], and [5, 6] in the script" in done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr


def test_a_directory_that_is_none(saved):
    done = run([sys.executable, "loop.py", "loader", "1", "5"], "--replay-grads", "nothing", cwd=saved)
    assert done.returncode == 3 and "nothing is no directory" in done.stderr


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        struct.pack("<Q", 10**15) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 60) + b'{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}'[:60],
        struct.pack("<Q", 61) + b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}      ',
        struct.pack("<Q", 62) + b'{"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}      ',
        struct.pack("<Q", 60) + b'{"a":{"dtype":"X","shape":[4],"data_offsets":[0,16]}}       ',
    ],
)
def test_damaged_sets_are_refused(content, tmp_path):
    from msprobe._attach import tensor_sets

    path = tmp_path / "batch.safetensors"
    path.write_bytes(content)
    with pytest.raises(tensor_sets.SetError):
        tensor_sets.read(str(path))


def test_sets_come_back(tmp_path):
    from msprobe._attach import tensor_sets

    arrays = {"a.b": np.arange(6, dtype=np.int64).reshape(2, 3), "empty": np.zeros((0, 3), np.float16)}
    path = tensor_sets.file_of(str(tmp_path), 3, 1, "batch", 2)
    tensor_sets.write(path, {name: tensor_sets.of_array(array) for name, array in arrays.items()}, {"step": 3})
    assert tensor_sets.list_steps(str(tmp_path), 1, "batch") == [(3, 2)]
    tensors, metadata = tensor_sets.read_directory(str(tmp_path / "step_3" / "rank_1"), "batch", 2)
    assert metadata == {"step": "3"} and bytes(tensors["a.b"].data) == arrays["a.b"].tobytes()
    assert {name: array.tobytes() for name, array in read(path).items()} == {n: a.tobytes() for n, a in arrays.items()}
    with pytest.raises(tensor_sets.SetError, match="as many ranks"):
        tensor_sets.list_steps(str(tmp_path), 0, "batch")
    np.save(tmp_path / "step_3" / "rank_1" / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "step_3" / "rank_1" / "batch_2.safetensors").unlink()
    with pytest.raises(tensor_sets.SetError, match=r"object\.npy cannot be read"):
        tensor_sets.read_directory(str(tmp_path / "step_3" / "rank_1"), "batch")


SCALED = """
import torch
torch.manual_seed(1)
x = torch.randn(4, 3)
model = torch.nn.Linear(3, 2)
for fused in (False, True):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loss = model(x).square().sum()
    print(*[float(torch.linalg.vector_norm(g.double())) for g in torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    optimizer.zero_grad()
    del optimizer
"""


def test_the_loss_scale_is_divided_out(tmp_path):
    """By the scaler before the optimizer steps, and by an optimizer that does it itself."""
    (tmp_path / "scaled.py").write_text(SCALED)
    done = run([sys.executable, "scaled.py"], "--save-grads", "grads", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for step, (line, scale) in enumerate(zip(done.stdout.splitlines(), ("1.0", "1024.0"), strict=True)):
        with (tmp_path / f"grads/step_{step}/rank_0/grads_norm.csv").open() as file:
            rows = list(csv.reader(file))
        assert [float(row[3]) for row in rows[1:3]] == pytest.approx([float(text) for text in line.split()], rel=1e-6)
        assert rows[-1][3] == scale

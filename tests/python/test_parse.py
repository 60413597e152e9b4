"""`msprobe parse`: dumps of Ascend's kernels and of ATB as files of NumPy and PyTorch."""

import json
import shutil
import struct
import sys
from pathlib import Path

import numpy
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import run

DATA = Path(__file__).resolve().parents[1] / "golden" / "mindspore" / "adump"


def names(folder):
    return {p.name for p in Path(folder).iterdir()}


def test_every_type_and_record_of_overflow(tmp_path):
    """Arrays and JSON that are known by construction; the earlier tool makes a 0-d tensor 1-d and an empty one float64."""
    run(["parse", "-d", DATA / "data", "-t", "npy", "-o", tmp_path])
    want = names(DATA / "answer")
    assert names(tmp_path) - want == {
        "Conv2D.Default_network_conv_Conv2D-op0.8.3.1735704000003274.l1buffer.0.bin",
    }
    assert want <= names(tmp_path)
    for name in want:
        assert (tmp_path / name).read_bytes() == (DATA / "answer" / name).read_bytes(), name


def test_as_pytorch_files(tmp_path):
    run(["parse", "--dump_path", DATA / "data", "--output_path", tmp_path])
    cast = "Cast.Default_Cast-op1.9.3.1735704000003411.input"
    bfloats = torch.load(tmp_path / f"{cast}.0.pt")
    assert bfloats.dtype == torch.bfloat16
    assert numpy.array_equal(bfloats.float().numpy(), numpy.load(DATA / "answer" / f"{cast}.0.npy"))
    assert torch.load(tmp_path / f"{cast}.4.pt").shape == ()


def test_in_the_order_of_the_framework(tmp_path):
    run(["parse", "-d", DATA / "data", "-t", "npy", "-o", tmp_path, "--host"])
    conv = "Conv2D.Default_network_conv_Conv2D-op0.8.3.1735704000003274.input"
    blocks, weight = (numpy.load(DATA / "answer" / f"{conv}.{i}.npy") for i in range(2))
    n, c1, h, w, c0 = blocks.shape
    want = blocks.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)[:, :20]
    assert numpy.array_equal(numpy.load(tmp_path / f"{conv}.0.npy"), want)
    w1, h1, h0, w0 = weight.shape
    want = weight.transpose(1, 2, 0, 3).reshape(h1 * h0, w1 * w0)[:16, :20]
    assert numpy.array_equal(numpy.load(tmp_path / f"{conv}.1.npy"), want)


def test_files_of_atb(tmp_path):
    header = "$Version=1.0\n$Object.Count=1\nformat=2\ndtype=27\ndims=2,2\n$Object.data=0,8\n$End=1\n"
    folder = tmp_path / "op"
    folder.mkdir()
    (folder / "intensor0.bin").write_bytes(header.encode() + struct.pack("<4H", 0x3F80, 0xC000, 0x4040, 0x7F80))
    run(["parse", "-d", folder, "-t", "npy", "-o", tmp_path / "npy"])
    run(["parse", "-d", folder / "intensor0.bin", "-o", tmp_path / "pt"])
    want = numpy.float32([[1, -2], [3, numpy.inf]])
    assert numpy.array_equal(numpy.load(tmp_path / "npy" / "intensor0.npy"), want)
    assert torch.load(tmp_path / "pt" / "intensor0.pt").dtype == torch.bfloat16


def test_what_cannot_be_read_is_listed_and_the_rest_converted(tmp_path):
    folder = tmp_path / "step"
    shutil.copytree(DATA / "broken", folder)
    good = "AddN.Default_AddN-op2.65535.65535.1735704000003548"
    shutil.copy(DATA / "data" / good, folder / good)
    done = run(["parse", "-d", folder, "-t", "npy", "-o", tmp_path / "out"], check=False)
    assert done.returncode == 3
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("[msprobe] error: 2 files could not be converted")
    listed = (tmp_path / "out" / "convert_failed_file_list.txt").read_text().splitlines()
    assert listed == sorted(str(p.resolve()) for p in folder.iterdir() if p.name != good)
    assert f"{good}.input.0.npy" in names(tmp_path / "out")


@pytest.mark.parametrize("make", ["missing", "empty"])
def test_nothing_to_convert(make, tmp_path):
    if make == "empty":
        (tmp_path / "in").mkdir()
    done = run(["parse", "-d", tmp_path / "in", "-o", tmp_path / "out"], check=False)
    assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1


def test_summary_for_programs(tmp_path):
    done = run(["parse", "-d", DATA / "data", "-t", "npy", "-o", tmp_path, "--json"])
    assert set(json.loads(done.stdout)["written"]) == names(tmp_path)

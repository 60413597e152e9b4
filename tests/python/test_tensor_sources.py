"""Tensors of acc_check: read from their bytes where these are all that there is of them, else by torch."""

import json

import torch
from test_acc_check import check, results


def tensors():
    """Tensors as programs save them, of which some are more than their bytes."""
    torch.manual_seed(0)
    whole = torch.randn(6, 8)
    pair = torch.complex(torch.randn(4, 5), torch.randn(4, 5))
    return {
        "contiguous": whole,
        "offset": whole[2:5],
        "transposed": whole.t(),
        "strided": whole[:, ::2],
        "expanded": torch.randn(1, 5).expand(4, 5),
        "scalar": torch.tensor(1.25),
        "empty": torch.zeros(0, 3),
        "negative": pair.conj().imag,  # its bytes have the other sign
        "conjugate": pair.conj(),
        "complex": pair,
        "parameter": torch.nn.Parameter(torch.randn(3, 3)),
        "attributes": named(torch.randn(3, 3)),
        "half": torch.randn(5, 7).half(),
        "bfloat16": torch.randn(5, 7).bfloat16(),
        "double": torch.randn(5, 7).double(),
        "int8": torch.randint(-5, 5, (4, 4), dtype=torch.int8),
        "int64": torch.randint(-5, 5, (4, 4)),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }


def named(tensor):
    tensor.label = "weight"
    return tensor


def test_tensors_of_all_kinds(tmp_path):
    files = tmp_path / "dump_tensor_data"
    files.mkdir()
    data = {}
    for name, tensor in tensors().items():
        full = f"Torch.neg.{len(data)}"
        leaves = []
        for place, value in (("input", tensor), ("output", torch.neg(tensor.detach()))):
            path = files / f"{full}.forward.{place}.0.pt"
            torch.save(value, path)
            shown = {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape)}
            leaves.append(shown | {"requires_grad": False, "data_name": path.name, "Max": 9, "Min": -9})
        data[f"{full}.forward"] = {"input_args": [leaves[0]], "input_kwargs": {}, "output": [leaves[1]], "kind": name}
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(files)}
    (tmp_path / "dump.json").write_text(json.dumps({**head, "data": data}))
    kinds = {full.removesuffix(".forward"): op["kind"] for full, op in data.items()}
    for device in ("recorded", "cpu"):
        check(tmp_path / "dump.json", tmp_path / device, "-d", device)
        found = {kinds[name]: row[0] for name, row in results(tmp_path / device).items()}
        wrong = {kind: status for kind, status in found.items() if status != "pass"}
        assert set(found) == set(kinds.values()) and not wrong, wrong

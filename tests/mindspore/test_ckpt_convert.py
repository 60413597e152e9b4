"""What msprobe ckpt convert writes is what MindSpore loads, and the other way round."""

import numpy as np
import torch
from graph_cases import run
from launch import run_mindspore

NETWORK = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn

work = sys.argv[1]

class Layers(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.conv = nn.Conv1d(6, 4, 3, pad_mode="valid", has_bias=True)
        self.batch = nn.BatchNorm1d(4)
        self.prelu = nn.PReLU(4)
        self.layer = nn.LayerNorm((4,), epsilon=1e-5)
        self.out = nn.Dense(4, 2)

    def construct(self, ids):
        x = self.embedding(ids).transpose(0, 2, 1)
        x = self.batch(self.conv(x).mean(axis=2))
        return self.out(self.layer(self.prelu(x)))

net = Layers()
net.set_train(False)
params = ms.load_checkpoint(f"{work}/a.ckpt")
missing, left = ms.load_param_into_net(net, params, strict_load=True)
assert not missing and not left, (missing, left)
y = net(ms.Tensor(np.load(f"{work}/ids.npy"), ms.int32))
np.save(f"{work}/y.npy", y.asnumpy())
ms.save_checkpoint(net, f"{work}/back.ckpt")
other = ms.load_checkpoint(f"{work}/types.ckpt")
assert other["half"].dtype == ms.bfloat16 and other["half"].shape == (3,), other["half"]
assert other["single"].shape == () and float(other["single"].asnumpy()) == 2.5
assert other["count"].asnumpy().tolist() == [0, 1, 2, 3] and other["count"].dtype == ms.int64
assert ms.load_checkpoint(f"{work}/a.safetensors", format="safetensors")["out.weight"].shape == (2, 4)
"""


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 6)
        self.conv = torch.nn.Conv1d(6, 4, 3)
        self.batch = torch.nn.BatchNorm1d(4)
        self.prelu = torch.nn.PReLU(4)
        self.layer = torch.nn.LayerNorm(4)
        self.out = torch.nn.Linear(4, 2)

    def forward(self, ids):
        x = self.embedding(ids).transpose(1, 2)
        x = self.batch(self.conv(x).mean(2))
        return self.out(self.layer(self.prelu(x)))


def test_weights_go_to_mindspore_and_come_back(tmp_path, mindspore_python):
    torch.manual_seed(0)
    model = Layers().eval()
    for t in model.state_dict().values():
        if t.is_floating_point():
            t += torch.rand(t.shape)
    ids = torch.randint(0, 11, (3, 8))
    np.save(tmp_path / "ids.npy", ids.numpy())
    torch.save(model.state_dict(), tmp_path / "a.pt")
    types = {"half": torch.arange(3.0).bfloat16(), "single": torch.tensor(2.5), "count": torch.arange(4)}
    torch.save(types, tmp_path / "types.pt")
    for name in ("a", "types"):
        run(["ckpt", "convert", tmp_path / f"{name}.pt", tmp_path / f"{name}.ckpt"])
    run(["ckpt", "convert", tmp_path / "a.pt", tmp_path / "a.safetensors", "--names", "mindspore"])
    script = tmp_path / "network.py"
    script.write_text(NETWORK)
    done = run_mindspore([mindspore_python, script, tmp_path])
    assert done.returncode == 0, done.stderr[-2000:]
    with torch.no_grad():
        assert np.allclose(np.load(tmp_path / "y.npy"), model(ids).numpy(), atol=1e-5)
    # As MindSpore wrote it, into a model of PyTorch that knows its own shapes.
    torch.save({n: t for n, t in model.state_dict().items() if "num_batches" not in n}, tmp_path / "like.pt")
    run(["ckpt", "convert", tmp_path / "back.ckpt", tmp_path / "back.pt", "--like", tmp_path / "like.pt"])
    back = torch.load(tmp_path / "back.pt", weights_only=True)
    missing, unexpected = Layers().load_state_dict(back, strict=False)
    assert not missing and not unexpected
    for name, t in back.items():
        assert torch.equal(t, model.state_dict()[name]), name

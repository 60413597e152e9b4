"""The same with the products of pairs picked by their places in a row."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

RENAMED = (("bottom.", "bot_l."), ("tables.", "emb_l."), ("top.", "top_l."), ("embedding_table", "weight"))


class DLRMNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.bottom = nn.SequentialCell(nn.Dense(6, 16), nn.ReLU(), nn.Dense(16, 8), nn.ReLU())
        self.tables = nn.CellList([nn.Embedding(40, 8) for _ in range(3)])
        self.top = nn.SequentialCell(nn.Dense(14, 16), nn.Tanh(), nn.Dense(16, 1))
        i, j = np.tril_indices(4, -1)
        self.index = Tensor(i * 4 + j, ms.int32)

    def construct(self, ids, dense):
        x = self.bottom(dense)
        rows = [x]
        for n, table in enumerate(self.tables):
            rows.append(table(ids[:, n]))
        t = ops.stack(rows, axis=1)
        z = ops.bmm(t, t.swapaxes(1, 2)).reshape(t.shape[0], 16)
        z = ops.gather(z, self.index, 1)
        return self.top(ops.cat((x, z), axis=1)).squeeze(1)


def make():
    return DLRMNet()


def loss(model, ids, dense):
    target = (ids[:, 0] % 2).astype(ms.float32)
    return ops.binary_cross_entropy_with_logits(model(ids, dense), target, ops.ones_like(target), ops.ones_like(target))

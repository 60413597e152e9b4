"""The same updates as a cell that inherits the linear layer, so that the frozen weight and the update are side by side."""

import mindspore as ms
from mindspore import Parameter, nn, ops

WIDTH, RANK, ALPHA, CLASSES, WORDS = 32, 4, 8, 6, 40
RENAMED = (
    ("embedding.embedding_table", "embed.weight"),
    ("gamma", "weight"),
    ("beta", "bias"),
    ("proj.weight", "proj.base_layer.weight"),
    ("proj.bias", "proj.base_layer.bias"),
    ("delta_lora_a", "lora_A.weight"),
    ("delta_lora_b", "lora_B.weight"),
    ("regression", "head"),
)


class LoRADense(nn.Dense):
    def __init__(self, inside, outside):
        super().__init__(inside, outside)
        self.weight.requires_grad = False
        self.bias.requires_grad = False
        self.delta_lora_a = Parameter(ops.ones((RANK, inside), ms.float32), name="delta_lora_a")
        self.delta_lora_b = Parameter(ops.ones((outside, RANK), ms.float32), name="delta_lora_b")
        self.scaling = ALPHA / RANK
        self.lora_a_matmul = ops.MatMul(transpose_b=True)
        self.lora_b_matmul = ops.MatMul(transpose_b=True)
        self.mul = ops.Mul()
        self.add_lora = ops.Add()

    def construct(self, x):
        out = super().construct(x)
        flat = x.reshape(-1, x.shape[-1])
        low = self.lora_a_matmul(flat, self.delta_lora_a)
        update = self.lora_b_matmul(low, self.delta_lora_b)
        update = self.mul(update, self.scaling)
        return self.add_lora(out, update.reshape(out.shape))


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.up_proj = LoRADense(WIDTH, 2 * WIDTH)
        self.act = nn.ReLU()
        self.down_proj = LoRADense(2 * WIDTH, WIDTH)

    def construct(self, x):
        return x + self.down_proj(self.act(self.up_proj(self.norm(x))))


class LoRAModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.embedding.embedding_table.requires_grad = False
        self.layers = nn.CellList([Layer() for _ in range(3)])
        self.regression = nn.Dense(WIDTH, CLASSES)

    def construct(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.regression(x.mean(1))


def make():
    return LoRAModel()


def loss(model, tokens, targets):
    return ops.mse_loss(model(tokens), targets)

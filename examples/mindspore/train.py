"""A LLaMA of two layers in MindSpore, as the first stage of an accuracy problem wants it: few layers, a constant learning
rate, no dropout, seeds set, one card. Records two steps.

    python train.py --dump out/golden
    python train.py --dump out/problem --sabotage weight
    msprobe compare -tp out/problem/step0 -gp out/golden/step0 -o out/compare

The lines with msprobe are the ones to copy into a training script of your own.
"""

import argparse
import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from msprobe.mindspore import PrecisionDebugger, seed_all

WIDTH, HEADS, LAYERS, VOCABULARY, BATCH, LENGTH = 32, 4, 2, 64, 2, 8
# What can silently go wrong; each touches one place and raises no error.
SABOTAGES = ("none", "weight", "eps")
BROKEN_LAYER = 1


class Norm(nn.Cell):
    """Root mean square norm."""

    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(WIDTH, np.float32)), name="weight")
        self.eps = eps

    def construct(self, x):
        return x * ops.rsqrt(ops.mean(ops.square(x), -1, keep_dims=True) + self.eps) * self.weight


class Attention(nn.Cell):
    """Causal attention."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Dense(WIDTH, WIDTH, has_bias=False) for _ in range(4))
        self.mask = Tensor(np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))

    def heads(self, x):
        return x.reshape((BATCH, LENGTH, HEADS, WIDTH // HEADS)).swapaxes(1, 2)

    def construct(self, x):
        q, k, v = self.heads(self.q_proj(x)), self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        scores = ops.matmul(q, k.swapaxes(2, 3)) / math.sqrt(WIDTH // HEADS) + self.mask
        mixed = ops.matmul(ops.softmax(scores, -1), v).swapaxes(1, 2)
        return self.o_proj(mixed.reshape((BATCH, LENGTH, WIDTH)))


class FeedForward(nn.Cell):
    """Gated linear units."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Dense(WIDTH, 2 * WIDTH, has_bias=False) for _ in range(2))
        self.down_proj = nn.Dense(2 * WIDTH, WIDTH, has_bias=False)

    def construct(self, x):
        return self.down_proj(ops.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Cell):
    """One layer, with its two residual branches."""

    def __init__(self, eps: float):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(eps), Norm(eps)
        self.self_attn, self.mlp = Attention(), FeedForward()

    def construct(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Cell):
    """Embedding, layers, norm and head."""

    def __init__(self, sabotage: str):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, WIDTH)
        eps = [1e-2 if sabotage == "eps" and layer == BROKEN_LAYER else 1e-6 for layer in range(LAYERS)]
        self.layers = nn.CellList([DecoderLayer(one) for one in eps])
        self.norm = Norm()
        self.lm_head = nn.Dense(WIDTH, VOCABULARY, has_bias=False)

    def construct(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


def build(sabotage: str) -> Llama:
    """Builds the network; every sabotage starts from the same weights."""
    net = Llama(sabotage)
    for number, param in enumerate(net.get_parameters()):
        if len(param.shape) > 1:
            values = np.random.default_rng(number).standard_normal(param.shape) * param.shape[1] ** -0.5
            param.set_data(Tensor(values.astype(np.float32)))
    if sabotage == "weight":  # a checkpoint converted with one matrix scaled
        broken = net.layers[BROKEN_LAYER].mlp.up_proj.weight
        broken.set_data(broken * 1.25)
    return net


def main() -> None:
    """Trains two steps and records them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dump", default="out/golden")
    parser.add_argument("--sabotage", choices=SABOTAGES, default="none")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    seed_all(42, mode=True)
    debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=arguments.dump)
    net = build(arguments.sabotage)
    params = net.trainable_params()
    optimizer = nn.SGD(params, learning_rate=0.05)

    def loss_of(ids, labels):
        return mint.mean(ops.cross_entropy(net(ids).reshape((-1, VOCABULARY)), labels, reduction="none"))

    grad = ms.value_and_grad(loss_of, None, params)
    for step in range(2):
        ids = np.random.default_rng(step).integers(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32)
        labels = np.roll(ids, -1, 1).reshape(-1)
        debugger.start(net)
        loss, grads = grad(Tensor(ids), Tensor(labels))
        debugger.stop()
        optimizer(grads)
        debugger.step()
        print(f"step {step}: loss {float(loss.asnumpy()):.6f}")


if __name__ == "__main__":
    main()

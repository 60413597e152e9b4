"""Pairs of runs that compute the same in another way: no answer may say "bug", next to none "suspicious"."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from bugs import method
from clean import Clean
from work import Work, conv, mini_gpt, moe, next_token_loss, rnn, tokens_of

# ---- a second model whose parts have several right forms --------------------------------------------------------------------


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(*pair, bias=False) for pair in ((width, 64), (width, 64), (64, width))
        )

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Heads(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, self.size).transpose(1, 2)

    def attend(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        mask = torch.ones(*scores.shape[-2:], dtype=torch.bool).triu(1)
        return torch.matmul(torch.softmax(scores.masked_fill(mask, -1e9), dim=-1), v)

    def forward(self, x):
        out = self.attend(self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x)))
        return self.o(out.transpose(1, 2).reshape(x.shape))


class Parallel(nn.Module):
    """Attention and gated layer beside each other: three terms are summed up."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention, self.mlp = Heads(width), Gated(width)

    def forward(self, x):
        return x + self.attention(self.norm1(x)) + self.mlp(self.norm2(x))


class MiniGated(nn.Module):
    def __init__(self, width=32, layers=3):
        super().__init__()
        self.embed = nn.Embedding(48, width)
        self.blocks = nn.ModuleList(Parallel(width) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, 48, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gated():
    return Work(MiniGated(), tokens_of(2, 12), next_token_loss)


def each(work, kind, name="forward"):
    """Decorator: replaces a method of all modules of a class."""

    def replace(function):
        for module in work.model.modules():
            if type(module).__name__ == kind:
                method(module, name)(function)
        return work

    return replace


# ---- rewrites: each changes a Work ------------------------------------------------------------------------------------------


def split_sum(work):
    @each(work, "Parallel")
    def forward(self, x):
        return x + (self.attention(self.norm1(x)) + self.mlp(self.norm2(x)))


def residual_last(work):
    @each(work, "Parallel")
    def forward(self, x):
        return self.mlp(self.norm2(x)) + self.attention(self.norm1(x)) + x


def residual_first(work):
    @each(work, "Block")
    def forward(self, x):
        x = self.attention(self.norm1(x)) + x
        return self.mlp(self.norm2(x)) + x


def calls_swapped(work):
    """The gated layer is computed ahead of the attention."""

    @each(work, "Parallel")
    def forward(self, x):
        y = self.mlp(self.norm2(x))
        return x + self.attention(self.norm1(x)) + y


def silu_by_sigmoid(work):
    @each(work, "Gated")
    def forward(self, x):
        gate = self.gate(x)
        return self.down(gate * torch.sigmoid(gate) * self.up(x))


def gate_behind_up(work):
    @each(work, "Gated")
    def forward(self, x):
        up = self.up(x)
        return self.down(up * F.silu(self.gate(x)))


def gate_and_up_at_once(work):
    @each(work, "Gated")
    def forward(self, x):
        gate, up = F.linear(x, torch.cat((self.gate.weight, self.up.weight))).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


def gelu_by_erf(work):
    @each(work, "FeedForward")
    def forward(self, x):
        x = self.up(x)
        return self.down(0.5 * x * (1 + torch.erf(x / math.sqrt(2.0))))


def tanh_gelu(work):
    @each(work, "FeedForward")
    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


def tanh_gelu_written_out(work):
    @each(work, "FeedForward")
    def forward(self, x):
        x = self.up(x)
        return self.down(0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3)))))


def rms_norm_in_one_call(work):
    @each(work, "RmsNorm")
    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)


def rms_norm_divides(work):
    @each(work, "RmsNorm")
    def forward(self, x):
        return self.weight * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6))


def layer_norm_by_hand(work):
    @each(work, "LayerNorm")
    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight + self.bias


def fused_attention(work):
    @each(work, "Heads", "attend")
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def queries_scaled(work):
    @each(work, "Heads", "attend")
    def attend(self, q, k, v):
        scores = torch.matmul(q / math.sqrt(self.size), k.transpose(-1, -2))
        mask = torch.ones(*scores.shape[-2:], dtype=torch.bool).triu(1)
        return torch.matmul(torch.softmax(scores.masked_fill(mask, -1e9), dim=-1), v)


def mask_added(work):
    @each(work, "Heads", "attend")
    def attend(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        return torch.matmul(torch.softmax(scores + torch.full(scores.shape[-2:], -1e9).triu(1), dim=-1), v)


def softmax_by_hand(work):
    @each(work, "Heads", "attend")
    def attend(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        scores = scores.masked_fill(torch.ones(*scores.shape[-2:], dtype=torch.bool).triu(1), -1e9)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        return torch.matmul(powers, v) / powers.sum(-1, keepdim=True)


def einsum_attention(work):
    @each(work, "Heads", "attend")
    def attend(self, q, k, v):
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(self.size)
        mask = torch.ones(*scores.shape[-2:], dtype=torch.bool).triu(1)
        return torch.einsum("bhts,bhsd->bhtd", torch.softmax(scores.masked_fill(mask, -1e9), dim=-1), v)


def values_first(work):
    @each(work, "Heads")
    def forward(self, x):
        v, k, q = self.split(self.v(x)), self.split(self.k(x)), self.split(self.q(x))
        return self.o(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))


def qkv_at_once(work):
    @each(work, "Heads")
    def forward(self, x):
        parts = (self.q, self.k, self.v)
        weight, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        q, k, v = (self.split(part) for part in F.linear(x, weight, bias).chunk(3, dim=-1))
        return self.o(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))


def samples_one_by_one(work):
    """The batch goes through each feed-forward layer in parts."""

    @each(work, "FeedForward")
    def forward(self, x):
        return torch.cat([self.down(self.act(self.up(part))) for part in x.split(1)])


def linear_by_matmul(work):
    @each(work, "Linear")
    def forward(self, x):
        y = torch.matmul(x, self.weight.t())
        return y if self.bias is None else y + self.bias


def linear_by_addmm(work):
    @each(work, "Linear")
    def forward(self, x):
        if self.bias is None:
            return torch.mm(x.flatten(0, -2), self.weight.t()).view(*x.shape[:-1], -1)
        return torch.addmm(self.bias, x.flatten(0, -2), self.weight.t()).view(*x.shape[:-1], -1)


def linear_in_halves(work):
    """The sum of a product in two parts."""

    @each(work, "Linear")
    def forward(self, x):
        half = x.shape[-1] // 2
        y = F.linear(x[..., :half], self.weight[:, :half]) + F.linear(x[..., half:], self.weight[:, half:])
        return y if self.bias is None else y + self.bias


def one_hot_embedding(work):
    @each(work, "Embedding")
    def forward(self, tokens):
        return torch.matmul(F.one_hot(tokens, self.weight.shape[0]).to(self.weight.dtype), self.weight)


def experts_backwards(work):
    @each(work, "Experts")
    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, which = self.route(flat)
        out = self.buffer(flat)
        for index in reversed(range(len(self.experts))):
            rows, slot = torch.where(which == index)
            out = out.index_add(0, rows, self.experts[index](flat[rows]) * weights[rows, slot, None])
        return out.view_as(x)


def experts_at_once(work):
    @each(work, "Experts")
    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, which = self.route(flat)
        up, down = (torch.stack([getattr(e, n).weight for e in self.experts]) for n in ("up", "down"))
        up_bias, down_bias = (torch.stack([getattr(e, n).bias for e in self.experts]) for n in ("up", "down"))
        y = F.gelu(torch.einsum("tw,ehw->eth", flat, up) + up_bias[:, None])
        y = torch.einsum("eth,ewh->etw", y, down) + down_bias[:, None]
        gates = torch.zeros(flat.shape[0], len(self.experts)).scatter(1, which, weights)
        return torch.einsum("etw,te->tw", y, gates).view_as(x)


def gates_by_softmax(work):
    """The softmax over the chosen is that over all, normalised."""

    @each(work, "Experts", "route")
    def route(self, x):
        chosen, which = self.router(x).topk(self.chosen, dim=-1)
        return chosen.softmax(dim=-1), which


def batch_norm_by_hand(work):
    @each(work, "BatchNorm2d")
    def forward(self, x):
        mean, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), keepdim=True, unbiased=False)
        y = (x - mean) * torch.rsqrt(var + self.eps)
        return y * self.weight[:, None, None] + self.bias[:, None, None]


def convolution_by_matmul(work):
    @each(work, "Conv2d")
    def forward(self, x):
        size = (x.shape[2] + 2 * self.padding[0] - self.kernel_size[0]) // self.stride[0] + 1
        columns = F.unfold(x, self.kernel_size, padding=self.padding, stride=self.stride)
        y = torch.matmul(self.weight.flatten(1), columns).view(x.shape[0], -1, size, size)
        return y if self.bias is None else y + self.bias[:, None, None]


def channels_last(work):
    work.model.to(memory_format=torch.channels_last)
    work.batch = (work.batch[0].to(memory_format=torch.channels_last), work.batch[1])


def pooling_by_call(work):
    @method(work.model, "forward")
    def forward(self, images):
        x = F.relu(self.bn(self.enter(self.normalise(images))))
        return self.head(F.adaptive_avg_pool2d(self.layer2(self.layer1(x)), 1).flatten(1))


def cell_by_hand(work):
    @each(work, "GRUCell")
    def forward(self, x, h):
        a, b = (
            F.linear(x, self.weight_ih, self.bias_ih).chunk(3, -1),
            F.linear(h, self.weight_hh, self.bias_hh).chunk(3, -1),
        )
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        n = torch.tanh(a[2] + r * b[2])
        return (1 - z) * n + z * h


def loss_by_log_sum(work):
    def loss(model, tokens):
        logits, labels = model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        return (torch.logsumexp(logits, -1) - logits.gather(1, labels[:, None])[:, 0]).mean()

    work.loss = loss


def loss_sample_by_sample(work):
    def loss(model, tokens):
        logits = model(tokens)[:, :-1]
        parts = [F.cross_entropy(a, b, reduction="sum") for a, b in zip(logits, tokens[:, 1:])]
        return sum(parts) / tokens[:, 1:].numel()

    work.loss = loss


def copies(work):
    """Copies where there were none."""

    @each(work, "Gated")
    def forward(self, x):
        x = x.clone()
        return self.down((F.silu(self.gate(x)) * self.up(x)).contiguous().clone())


def optimizer(kind="AdamW", **options):
    def change(work):
        work.optimizer = getattr(torch.optim, kind)(work.model.parameters(), lr=1e-2, **options)

    return change


# ---- pairs ------------------------------------------------------------------------------------------------------------------


def changed(make, *changes):
    def made():
        work = make()
        for change in changes:
            change(work)
        return work

    return made


def rewrite(make, change, about, golden=None, name=None, **options):
    """`golden`: a change of the golden run, where both leave the model's own form."""
    level = options.get("level", "mix")
    kind = options.get("summary") or options.get("task") or ""
    name = "_".join(filter(None, (name or change.__name__, make.__name__, level if level != "mix" else "", kind)))
    return Clean(name, changed(make, change), changed(make, golden) if golden else make, about, **options)


KINDS = (
    (gated, split_sum, "three terms, the last two first"),
    (gated, residual_last, "three terms, the residual last"),
    (mini_gpt, residual_first, "the residual as the second term"),
    (gated, calls_swapped, "two branches in another order"),
    (gated, silu_by_sigmoid, "silu as x * sigmoid(x)"),
    (gated, gate_behind_up, "the factors of a gate exchanged"),
    (gated, gate_and_up_at_once, "gate and up in one product"),
    (mini_gpt, gelu_by_erf, "gelu written out with erf"),
    (mini_gpt, tanh_gelu_written_out, "gelu written out with tanh", tanh_gelu),
    (gated, rms_norm_in_one_call, "rms_norm in one call"),
    (gated, rms_norm_divides, "rms_norm with a root and a division"),
    (mini_gpt, layer_norm_by_hand, "layer_norm in single steps"),
    (gated, fused_attention, "fused attention"),
    (gated, queries_scaled, "queries are scaled, not scores"),
    (gated, mask_added, "a mask is added, not filled in"),
    (gated, softmax_by_hand, "softmax written out, divided at the end"),
    (gated, einsum_attention, "einsum for matmul"),
    (gated, values_first, "query, key and value in another order"),
    (gated, qkv_at_once, "query, key and value in one product"),
    (mini_gpt, samples_one_by_one, "the batch in parts"),
    (mini_gpt, linear_by_matmul, "matmul and add for linear"),
    (mini_gpt, linear_by_addmm, "addmm for linear"),
    (mini_gpt, linear_in_halves, "products in two sums"),
    (gated, one_hot_embedding, "a product for the embedding"),
    (moe, experts_backwards, "experts in another order"),
    (moe, experts_at_once, "all experts in one call"),
    (moe, gates_by_softmax, "softmax of the chosen for the chosen of the softmax"),
    (conv, batch_norm_by_hand, "batch_norm in single steps"),
    (conv, convolution_by_matmul, "a product for the convolution"),
    (conv, channels_last, "channels last"),
    (conv, pooling_by_call, "pooling for a mean"),
    (rnn, cell_by_hand, "the recurrent cell written out"),
    (mini_gpt, loss_by_log_sum, "the loss written out"),
    (mini_gpt, loss_sample_by_sample, "the loss of each sample"),
    (gated, copies, "copies where there were none"),
)
L1, L0, TENSOR, MD5 = {"level": "L1"}, {"level": "L0"}, {"task": "tensor"}, {"summary": "md5"}


def rewrites():
    out = [rewrite(*kind, **options) for options in ({}, L1) for kind in KINDS]
    out += [rewrite(*kind, **TENSOR) for kind in KINDS[::4]]
    out += [rewrite(*kind, **MD5) for kind in KINDS[1::3]]
    out += [rewrite(*kind, **L0) for kind in KINDS[2::4]]
    return out


REWRITES = rewrites()

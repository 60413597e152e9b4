"""Models that the rules were not tuned to: shared key heads with rotary positions and stacked experts, a U-Net, a graph. The same in
another way, and bugs on top of that."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from bugs import method
from case import Case
from clean import Clean, autocast, in_half
from rewrites import L0, L1, MD5, TENSOR, changed, each, optimizer
from work import VOCABULARY, Work, tokens_of

# ---- a decoder ---------------------------------------------------------------------------------------------------------------


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.eps = 1e-6

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class SharedKeys(nn.Module):
    """Attention with fewer heads of keys and values than of queries."""

    def __init__(self, width, heads=4, shared=2):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, shared * self.size, bias=False) for _ in range(2))
        self.q_norm = RmsNorm(self.size)

    def rotate(self, x, by=0):
        places = torch.arange(x.shape[2]) + by
        angles = torch.outer(places.float(), 1.0 / 10000 ** (torch.arange(0, self.size, 2) / self.size))
        first, second = x.chunk(2, -1)
        cos, sin = (t.repeat(1, 2).to(x.dtype) for t in (torch.cos(angles), torch.sin(angles)))
        return x * cos + torch.cat([-second, first], -1) * sin

    def bias(self, length):
        return torch.full((length, length), float("-inf")).triu(1)

    def attend(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size) + self.bias(q.shape[2]).to(q.dtype)
        return F.softmax(scores, -1) @ v

    def repeated(self, x):
        return x.repeat_interleave(self.heads // self.shared, 1)

    def split(self, x, heads):
        return x.view(*x.shape[:2], heads, self.size).transpose(1, 2)

    def forward(self, x):
        q, k = self.split(self.q(x), self.heads), self.split(self.k(x), self.shared)
        q, k = self.rotate(self.q_norm(q)), self.rotate(k)
        y = self.attend(q, self.repeated(k), self.repeated(self.split(self.v(x), self.shared)))
        return self.o(y.transpose(1, 2).flatten(2))


class StackedExperts(nn.Module):
    """The weights of all experts are one parameter."""

    def __init__(self, width, count=4, chosen=2, hidden=48):
        super().__init__()
        self.count, self.chosen = count, chosen
        self.gate = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, 2 * hidden) * 0.15)
        self.down = nn.Parameter(torch.randn(count, hidden, width) * 0.15)

    def expert(self, index, x):
        gate, up = (x @ self.up[index]).chunk(2, -1)
        return (F.silu(gate) * up) @ self.down[index]

    def mix(self, x, weights, which):
        out = torch.zeros_like(x)
        for index in range(self.count):
            rows, slot = torch.where(which == index)
            out = out.index_add(0, rows, self.expert(index, x[rows]) * weights[rows, slot].unsqueeze(-1))
        return out

    def route(self, x):
        weights, which = torch.topk(F.softmax(self.gate(x), -1), self.chosen, -1)
        return weights / weights.sum(-1, keepdim=True), which

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        return self.mix(flat, *self.route(flat)).view(x.shape)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention, self.experts = SharedKeys(width), StackedExperts(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.experts(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def token_loss(model, tokens):
    logits = model(tokens)[:, :-1]
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


def decoder():
    return Work(Decoder(), tokens_of(2, 11), token_loss)


# ---- a U-Net -----------------------------------------------------------------------------------------------------------------


class Stage(nn.Module):
    def __init__(self, channels, out, time):
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(4, channels), nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.skip = nn.Conv2d(channels, out, 1)

    def act(self, x):
        return F.silu(x)

    def forward(self, x, time):
        return self.conv(self.act(self.norm(x))) + self.time(self.act(time))[:, :, None, None] + self.skip(x)


class UNet(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 16))
        self.enter, self.pool = (
            nn.Conv2d(3, channels, 3, padding=1),
            nn.Conv2d(channels, channels, 3, stride=2, padding=1),
        )
        self.first, self.middle = Stage(channels, channels, 16), Stage(channels, 2 * channels, 16)
        self.up, self.last = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2), Stage(2 * channels, channels, 16)
        self.out = nn.Conv2d(channels, 3, 1)

    def forward(self, images, times):
        time = self.time(torch.cat([torch.sin(times), torch.cos(times)], -1))
        first = self.first(self.enter(images), time)
        middle = self.middle(self.pool(first), time)
        return self.out(self.last(torch.cat([self.up(middle), first], 1), time) + first)


def unet():
    batch = (torch.randn(2, 3, 8, 8), torch.rand(2, 2) * 3, torch.randn(2, 3, 8, 8))
    return Work(UNet(), batch, lambda model, b: F.mse_loss(model(b[0] + b[2], b[1]), b[2]))


# ---- a graph -----------------------------------------------------------------------------------------------------------------


class Edges(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message, self.weight = nn.Linear(2 * width, width), nn.Linear(2 * width, 1)
        self.update = nn.GRUCell(width, width)

    def normalised(self, weights, to, nodes):
        powers = torch.exp(weights - weights.max())
        return powers / powers.new_zeros(nodes, 1).index_add(0, to, powers)[to]

    def forward(self, x, source, to, slope=0.2):
        pairs = torch.cat([x[source], x[to]], -1)
        weights = self.normalised(F.leaky_relu(self.weight(pairs), slope), to, x.shape[0])
        return self.update(torch.zeros_like(x).index_add(0, to, weights * torch.tanh(self.message(pairs))), x)


class Graph(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enter, self.norm, self.head = nn.Linear(5, width), nn.BatchNorm1d(width), nn.Linear(width, 3)
        self.layers = nn.ModuleList(Edges(width) for _ in range(3))

    def forward(self, x, source, to):
        x = F.elu(self.enter(x))
        for layer in self.layers:
            x = layer(x, source, to)
        return self.head(F.relu(self.norm(x)).mean(0, keepdim=True))


def graph():
    batch = (torch.randn(20, 5), torch.randint(0, 20, (60,)), torch.randint(0, 20, (60,)), torch.tensor([1]))
    return Work(Graph(), batch, lambda model, b: F.cross_entropy(model(*b[:3]), b[3], label_smoothing=0.1))


# ---- the same in another way -------------------------------------------------------------------------------------------------


def rotary_by_complex(work):
    @each(work, "SharedKeys", "rotate")
    def rotate(self, x, by=0):
        places = torch.arange(x.shape[2]) + by
        angles = torch.outer(places.float(), 1.0 / 10000 ** (torch.arange(0, self.size, 2) / self.size))
        turned = torch.complex(*(t.contiguous() for t in x.chunk(2, -1))) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([turned.real, turned.imag], -1)


def shared_keys_in_one_call(work):
    @each(work, "SharedKeys")
    def forward(self, x):
        q, k, v = (
            self.split(self.q(x), self.heads),
            self.split(self.k(x), self.shared),
            self.split(self.v(x), self.shared),
        )
        q, k = self.rotate(self.q_norm(q)), self.rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).flatten(2))


def scores_by_baddbmm(work):
    @each(work, "SharedKeys", "attend")
    def attend(self, q, k, v):
        bias = self.bias(q.shape[2]).expand(q.shape[0] * q.shape[1], -1, -1)
        keys = k.flatten(0, 1).transpose(1, 2)
        scores = torch.baddbmm(bias, q.flatten(0, 1), keys, alpha=1 / math.sqrt(self.size))
        return torch.bmm(torch.softmax(scores, -1), v.flatten(0, 1)).view(q.shape)


def grouped_experts(work):
    """Tokens are sorted by expert, and go back in one sum."""

    @each(work, "StackedExperts", "mix")
    def mix(self, x, weights, which):
        order = torch.argsort(which.flatten(), stable=True)
        rows = order // self.chosen
        counts = torch.bincount(which.flatten(), minlength=self.count).tolist()
        parts = [self.expert(index, part) for index, part in enumerate(x[rows].split(counts))]
        return torch.zeros_like(x).index_add(0, rows, torch.cat(parts) * weights.flatten()[order, None])


def all_experts_at_once(work):
    @each(work, "StackedExperts", "mix")
    def mix(self, x, weights, which):
        gate, up = torch.einsum("tw,ewh->eth", x, self.up).chunk(2, -1)
        chosen = torch.zeros(x.shape[0], self.count).scatter(1, which, weights)
        return (torch.bmm(F.silu(gate) * up, self.down) * chosen.t()[:, :, None]).sum(0)


def residual_in_place(work):
    @each(work, "Layer")
    def forward(self, x):
        y = self.attention(self.norm1(x))
        y += x
        z = self.experts(self.norm2(y))
        z += y
        return z


def sum_and_norm_at_once(work):
    """The residual is carried beside what is normalised, and the modules around both are not called."""

    @method(work.model, "forward")
    def forward(self, tokens):
        def norm(x, module):
            return F.rms_norm(x, x.shape[-1:], module.weight, module.eps)

        residual, y = self.embed(tokens), None
        for layer in self.layers:
            residual = residual if y is None else y + residual
            residual = layer.attention(norm(residual, layer.norm1)) + residual
            y = layer.experts(norm(residual, layer.norm2))
        return self.head(norm(y + residual, self.norm))


def norm_by_vector_norm(work):
    @each(work, "RmsNorm")
    def forward(self, x):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True) / math.sqrt(x.shape[-1])
        return x / torch.sqrt(norm * norm + self.eps) * self.weight


def group_norm_by_hand(work):
    @each(work, "GroupNorm")
    def forward(self, x):
        y = x.view(x.shape[0], self.num_groups, -1)
        y = (y - y.mean(-1, keepdim=True)) / torch.sqrt(y.var(-1, keepdim=True, unbiased=False) + self.eps)
        return y.view(x.shape) * self.weight[None, :, None, None] + self.bias[None, :, None, None]


def silu_by_exp(work):
    @each(work, "Stage", "act")
    def act(self, x):
        return x / (1 + torch.exp(-x))


def softmax_of_neighbours(work):
    @each(work, "Edges", "normalised")
    def normalised(self, weights, to, nodes):
        largest = torch.full((nodes, 1), -1e30).scatter_reduce(0, to[:, None], weights, "amax")
        powers = torch.exp(weights - largest[to])
        return powers / powers.new_zeros(nodes, 1).scatter_add(0, to[:, None], powers)[to]


def nodes_before_edges(work):
    """Products for each node and not for each edge."""

    @each(work, "Edges")
    def forward(self, x, source, to):
        def product(module):
            first, second = module.weight.chunk(2, -1)
            return F.linear(x, first)[source] + (F.linear(x, second) + module.bias)[to]

        weights = self.normalised(F.leaky_relu(product(self.weight), 0.2), to, x.shape[0])
        return self.update(torch.zeros_like(x).index_add(0, to, weights * torch.tanh(product(self.message))), x)


def drift(work):
    """Weights that went through another sum: some differ in their last bit."""
    with torch.no_grad():
        for parameter in work.model.parameters():
            parameter.add_(parameter.abs().mean() * 3e-8 * torch.randn(parameter.shape))


def pair(make, change, about, golden=None, **options):
    name = "_".join(filter(None, (change.__name__, make.__name__, *(str(v) for v in options.values()))))
    return Clean(name, changed(make, change), changed(make, golden) if golden else make, about, **options)


OTHER_REWRITES = [
    pair(decoder, rotary_by_complex, "rotary positions as complex numbers"),
    pair(decoder, shared_keys_in_one_call, "fused attention with shared keys", **TENSOR),
    pair(decoder, scores_by_baddbmm, "scores and mask in one call"),
    pair(decoder, grouped_experts, "experts grouped", **MD5),
    pair(decoder, all_experts_at_once, "all experts in one call"),
    pair(decoder, residual_in_place, "residuals are added in place", **L1),
    pair(decoder, sum_and_norm_at_once, "sum and norm without their modules"),
    pair(decoder, norm_by_vector_norm, "rms_norm by vector_norm", **L0),
    pair(unet, group_norm_by_hand, "group_norm in single steps", **TENSOR),
    pair(unet, silu_by_exp, "silu by exp"),
    pair(graph, softmax_of_neighbours, "softmax of each node's edges"),
    pair(graph, softmax_of_neighbours, "softmax of each node's edges", **MD5),
    pair(graph, nodes_before_edges, "products for each node", **TENSOR),
]
OTHER_ROUNDING = [
    pair(graph, drift, "weights differ in their last bits"),
    pair(graph, drift, "weights differ in their last bits", **TENSOR),
    pair(decoder, drift, "weights differ in their last bits", **L1),
    Clean("half_decoder", in_half(decoder), decoder, "bfloat16 against float32"),
    Clean("autocast_unet_L1", autocast(unet), unet, "autocast against float32", **L1),
]


# ---- bugs --------------------------------------------------------------------------------------------------------------------


def query_shifted(work):
    attention = work.model.layers[1].attention
    right = attention.rotate
    attention.rotate = lambda x: right(x, by=1 if x.shape[1] == attention.heads else 0)


def mask_lets_next_through(work):
    @method(work.model.layers[0].attention, "bias")
    def bias(self, length):
        return torch.full((length, length), float("-inf")).triu(2)


def short_window(work):
    @method(work.model.layers[1].attention, "bias")
    def bias(self, length):
        past = torch.full((length, length), float("-inf"))
        return past.triu(1) + past.tril(-6)


def root_of_head_forgotten(work):
    @method(work.model.layers[1].attention, "attend")
    def attend(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / self.size + self.bias(q.shape[2]).to(q.dtype)
        return F.softmax(scores, -1) @ v


def query_norm_skipped(work):
    work.model.layers[0].attention.q_norm.forward = lambda x: x


def gate_for_up(work):
    @method(work.model.layers[1].experts, "expert")
    def expert(self, index, x):
        up, gate = (x @ self.up[index]).chunk(2, -1)
        return (F.silu(gate) * up) @ self.down[index]


def experts_swapped(work):
    with torch.no_grad():
        down = work.model.layers[0].experts.down
        down[[0, 1]] = down[[1, 0]].clone()


def other_groups(work):
    work.model.middle.norm.num_groups = 2


def skip_dropped(work):
    @method(work.model.last, "forward")
    def forward(self, x, time):
        return self.conv(self.act(self.norm(x))) + self.time(self.act(time))[:, :, None, None]


def other_slope(work):
    right = work.model.layers[2].forward
    work.model.layers[2].forward = lambda x, source, to: right(x, source, to, slope=0.01)


def smoothing_forgotten(work):
    work.loss = lambda model, b: F.cross_entropy(model(*b[:3]), b[3])


def adapter(work):
    """A module beside a product that adds nothing yet, as adapters begin."""
    linear = work.model.layers[1].attention.o
    linear.adapter = nn.Linear(32, 32, bias=False)
    nn.init.zeros_(linear.adapter.weight)

    @method(linear, "forward")
    def forward(self, x):
        return F.linear(x, self.weight) + self.adapter(x)


def scaled_in_place(work):
    """A tensor that is used again much later is changed in place where it was made."""

    @method(work.model, "forward")
    def forward(self, images, times):
        time = self.time(torch.cat([torch.sin(times), torch.cos(times)], -1))
        first = self.first(self.enter(images), time)
        kept = first.clone()
        kept.mul_(0.9)
        middle = self.middle(self.pool(first), time)
        return self.out(self.last(torch.cat([self.up(middle), first], 1), time) + kept)


def other_rate(work):
    work.optimizer.param_groups[0]["lr"] = 2e-2


def split_with_other_eps(work):
    work.micro_batches = work.batch.chunk(2)
    work.model.layers[1].norm2.eps = 1e-3


WHERE = {
    query_shifted: ("layers.1.attention", "layers.1.attention/*"),
    mask_lets_next_through: ("layers.0.attention", "layers.0.attention/__add__", "layers.0.attention/triu"),
    short_window: ("layers.1.attention", "layers.1.attention/__add__", "layers.1.attention/triu"),
    root_of_head_forgotten: ("layers.1.attention", "layers.1.attention/*"),
    query_norm_skipped: (
        "layers.0.attention.q_norm",
        "layers.0.attention.q_norm/*",
        "layers.0.attention",
        "layers.0.attention/*",
    ),
    gate_for_up: ("layers.1.experts", "layers.1.experts/*"),
    experts_swapped: ("layers.0.experts", "layers.0.experts/__matmul__"),
    other_groups: ("middle.norm", "middle.norm/*"),
    skip_dropped: ("last", "last/*", "last.skip", "last.skip/*"),
    other_slope: ("layers.2", "layers.2/leaky_relu"),
    smoothing_forgotten: ("/cross_entropy",),
    adapter: ("layers.1.attention.o.adapter", "layers.1.attention.o.adapter/*", "layers.1.attention.o/*"),
    scaled_in_place: ("/mul_#0",),
    other_rate: ("optimizer/_fused_adamw_", "optimizer/addcdiv_#0"),
    split_with_other_eps: ("layers.1.norm2", "layers.1.norm2/__add__"),
}
FUSED, LOOP = optimizer(fused=True), optimizer(foreach=False)


def bug(make, fault, *changes, **options):
    form = "_on_" + changes[0].__name__ if changes else ""
    name = fault.__name__ + form + "".join(f"_{v}" for v in options.values())
    about = fault.__name__.replace("_", " ") + (" behind " + changes[0].__name__.replace("_", " ") if changes else "")
    return Case(name, make, fault, WHERE[fault], about, target=changed(make, *changes) if changes else None, **options)


def half(make, fault):
    return bug(make, fault)._replace(name=fault.__name__ + "_in_half", target=in_half(make))


OTHER_BUGS = [
    bug(decoder, query_shifted, norm_by_vector_norm),
    bug(decoder, mask_lets_next_through, norm_by_vector_norm),
    bug(decoder, mask_lets_next_through, drift),
    bug(decoder, short_window, all_experts_at_once),
    bug(decoder, short_window, rotary_by_complex, **MD5),
    bug(decoder, root_of_head_forgotten, residual_in_place),
    bug(decoder, query_norm_skipped, grouped_experts),
    bug(decoder, query_norm_skipped, drift),
    bug(decoder, gate_for_up, shared_keys_in_one_call),
    bug(decoder, gate_for_up, scores_by_baddbmm, **TENSOR),
    bug(decoder, experts_swapped, norm_by_vector_norm),
    bug(unet, other_groups, silu_by_exp),
    bug(unet, skip_dropped, group_norm_by_hand),
    bug(unet, skip_dropped, drift, **L0),
    bug(graph, other_slope, softmax_of_neighbours),
    bug(graph, smoothing_forgotten, nodes_before_edges),
    half(decoder, root_of_head_forgotten),
    half(unet, other_groups),
    half(graph, other_slope),
    bug(decoder, adapter, norm_by_vector_norm),
    bug(unet, scaled_in_place),
    bug(unet, scaled_in_place, drift),
    bug(decoder, other_rate, FUSED)._replace(name="other_rate_fused_for_a_loop", make=changed(decoder, LOOP)),
    bug(decoder, split_with_other_eps),
]

"""A small inference engine: what engines do that trainers do not.

Tokens of all requests lie behind each other in dimension 0; q, k, v and gate, up are one product each; norms take and return
the residual; keys and values live in pages; prompts come in chunks, later tokens one by one, and blocks of a prompt that
another request had are taken from the cache. Modules are named as those of vLLM. `faults` plants one thing that is wrong.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from torch import nn
from torch.nn import functional as F

BLOCK = 4


@dataclass
class Request:
    name: str
    tokens: list  # the prompt; what is generated comes behind it
    generate: int = 4
    computed: int = 0
    cached: int = 0
    blocks: list = field(default_factory=list)

    @property
    def wanted(self) -> int:
        return len(self.tokens) - self.computed


@dataclass
class Batch:
    """What attention needs: of each row its request and position."""

    requests: list
    counts: list
    positions: torch.Tensor


class RMSNorm(nn.Module):
    def __init__(self, like: nn.Module, eps: float, faults: dict):
        super().__init__()
        self.weight = nn.Parameter(like.weight.detach().clone(), requires_grad=False)
        self.eps, self.faults = faults.get("eps", eps), faults

    def forward(self, x: torch.Tensor, residual: Optional[torch.Tensor] = None) -> Any:
        if residual is not None:
            x = x if "residual" in self.faults else x + residual
            residual = x
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        scale = self.weight + 1 if "norm_plus_one" in self.faults else self.weight
        out = wide.to(x.dtype) * scale
        return out if residual is None else (out, residual)


class Linear(nn.Module):
    """Several products in one; returns its bias beside the output, as engines do."""

    def __init__(self, *parts: nn.Module, faults: Optional[dict] = None):
        super().__init__()
        self.weight = nn.Parameter(torch.cat([p.weight.detach() for p in parts]), requires_grad=False)
        has_bias = parts[0].bias is not None
        self.bias = nn.Parameter(torch.cat([p.bias.detach() for p in parts]), requires_grad=False) if has_bias else None
        self.faults = faults or {}

    def forward(self, x: torch.Tensor) -> tuple:
        bias = None if "bias" in self.faults else self.bias
        weight = self.weight
        if "q_rows" in self.faults:
            half = self.faults["q_rows"]
            weight = torch.cat([weight[half : 2 * half], weight[:half], weight[2 * half :]])
        return F.linear(x, weight, bias), None


class RotaryEmbedding(nn.Module):
    def __init__(self, size: int, base: float, faults: dict):
        super().__init__()
        base = faults.get("rope_base", base)
        self.size = size
        self.frequencies = 1.0 / base ** (torch.arange(0, size, 2).float() / size)

    def forward(self, positions: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> tuple:
        angles = positions.float()[:, None] * self.frequencies
        cos, sin = angles.cos()[:, None].to(q.dtype), angles.sin()[:, None].to(q.dtype)

        def turn(x: torch.Tensor) -> torch.Tensor:
            heads = x.view(x.shape[0], -1, self.size)
            a, b = heads.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)

        return turn(q), turn(k)


class Attention(nn.Module):
    """Attends to pages; each request alone."""

    def __init__(self, heads: int, groups: int, size: int, window: Optional[int], blocks: int, faults: dict):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, size
        self.scale = size**-0.5 * faults.get("attention_scale", 1)
        self.window = faults.get("window", window)
        self.faults = faults
        self.pages: Any = None
        self.blocks = blocks
        self.batch: Any = None

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if self.pages is None:
            self.pages = torch.zeros(2, self.blocks * BLOCK, self.groups, self.size, dtype=q.dtype)
        out, begin = torch.empty_like(q), 0
        for request, count in zip(self.batch.requests, self.batch.counts):
            rows = slice(begin, begin + count)
            begin += count
            end = request.computed + count
            slots = torch.tensor([request.blocks[p // BLOCK] * BLOCK + p % BLOCK for p in range(end)])
            self.pages[0, slots[-count:]] = k[rows].view(count, self.groups, self.size)
            self.pages[1, slots[-count:]] = v[rows].view(count, self.groups, self.size)
            out[rows] = self._attend(q[rows], self.pages[0, slots], self.pages[1, slots], request.computed)
        return out

    def _attend(self, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, first: int) -> torch.Tensor:
        queries = q.view(q.shape[0], self.heads, self.size)
        times = self.heads // self.groups
        if "heads" in self.faults:
            keys, values = (x.repeat(1, times, 1) for x in (keys, values))
        else:
            keys, values = (x.repeat_interleave(times, 1) for x in (keys, values))
        if "page" in self.faults:  # the first page of a sequence is another one's
            keys = torch.cat([keys[:BLOCK].flip(0), keys[BLOCK:]]) if len(keys) > BLOCK else keys
        scores = torch.einsum("qhd,khd->hqk", queries, keys).float() * self.scale
        where = torch.arange(first, first + q.shape[0])[:, None] - torch.arange(keys.shape[0])
        hidden = where < 0
        if self.window is not None:
            hidden = hidden | (where >= self.window)
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1).to(q.dtype)
        return torch.einsum("hqk,khd->qhd", weights, values).reshape(q.shape)


class SelfAttention(nn.Module):
    def __init__(self, like: nn.Module, config: Any, window: Optional[int], blocks: int, faults: dict):
        super().__init__()
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads, groups = config.num_attention_heads, config.num_key_value_heads
        self.sizes = [heads * size, groups * size, groups * size]
        self.qkv_proj = Linear(like.q_proj, like.k_proj, like.v_proj, faults=faults)
        norms = {"eps": faults["head_eps"]} if "head_eps" in faults else {}
        if hasattr(like, "q_norm"):
            self.q_norm = RMSNorm(like.q_norm, config.rms_norm_eps, norms)
            self.k_norm = RMSNorm(like.k_norm, config.rms_norm_eps, {})
        self.faults = faults
        self.rotary_emb = RotaryEmbedding(size, config.rope_parameters["rope_theta"], faults)
        self.attn = Attention(heads, groups, size, window, blocks, faults)
        self.o_proj = Linear(like.o_proj)

    def forward(self, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv_proj(x)[0].split(self.sizes, -1)
        if hasattr(self, "q_norm"):
            q = self.q_norm(q.view(len(q), -1, self.rotary_emb.size)).flatten(1)
            k = self.k_norm(k.view(len(k), -1, self.rotary_emb.size)).flatten(1)
        if "positions" in self.faults:
            positions = positions + self.faults["positions"] * (positions > 4)
        q, k = self.rotary_emb(positions, q, k)
        return self.o_proj(self.attn(q, k, v))[0]


class SiluAndMul(nn.Module):
    def __init__(self, faults: dict):
        super().__init__()
        self.faults = faults

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        if "gate_up" in self.faults:
            gate, up = up, gate
        return (F.gelu(gate) if "activation" in self.faults else F.silu(gate)) * up


class MLP(nn.Module):
    def __init__(self, like: nn.Module, faults: dict):
        super().__init__()
        self.gate_up_proj = Linear(like.gate_proj, like.up_proj)
        self.act_fn = SiluAndMul(faults)
        self.down_proj = Linear(like.down_proj)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_up_proj(x)[0]))[0]


class FusedMoE(nn.Module):
    def __init__(self, like: nn.Module, top: int, renormalised: bool):
        super().__init__()
        self.w13_weight = nn.Parameter(like.gate_up_proj.detach().clone(), requires_grad=False)
        self.w2_weight = nn.Parameter(like.down_proj.detach().clone(), requires_grad=False)
        self.top, self.renormalised = top, renormalised

    def forward(self, x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        share, chosen = logits.float().softmax(-1).topk(self.top, -1)
        if self.renormalised:
            share = share / share.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for n in range(self.top):
            gate, up = torch.einsum("ti,toi->to", x, self.w13_weight[chosen[:, n]]).chunk(2, -1)
            down = torch.einsum("ti,toi->to", F.silu(gate) * up, self.w2_weight[chosen[:, n]])
            out += down * share[:, n : n + 1].to(x.dtype)
        return out


class MoE(nn.Module):
    def __init__(self, like: nn.Module, config: Any, faults: dict):
        super().__init__()
        self.gate = Linear(_WithoutBias(like.gate.weight))
        renormalised = getattr(config, "norm_topk_prob", True) != ("top_k_norm" in faults)
        self.experts = FusedMoE(like.experts, config.num_experts_per_tok, renormalised)
        if hasattr(like, "shared_expert"):
            self.shared_expert = MLP(like.shared_expert, {})
            self.shared_expert_gate = Linear(_WithoutBias(like.shared_expert_gate.weight))
        self.faults = faults

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.experts(x, self.gate(x)[0])
        if hasattr(self, "shared_expert") and "shared" not in self.faults:
            out = out + self.shared_expert_gate(x)[0].sigmoid() * self.shared_expert(x)
        return out


class _WithoutBias:
    bias = None

    def __init__(self, weight: torch.Tensor):
        self.weight = weight


class DecoderLayer(nn.Module):
    def __init__(self, like: nn.Module, config: Any, window: Optional[int], blocks: int, faults: dict):
        super().__init__()
        norm = {key: value for key, value in faults.items() if key in ("eps", "norm_plus_one")}
        self.input_layernorm = RMSNorm(like.input_layernorm, config.rms_norm_eps, norm)
        self.self_attn = SelfAttention(like.self_attn, config, window, blocks, faults)
        lost = {key: value for key, value in faults.items() if key == "residual"}
        self.post_attention_layernorm = RMSNorm(like.post_attention_layernorm, config.rms_norm_eps, lost)
        self.mlp = MoE(like.mlp, config, faults) if hasattr(like.mlp, "experts") else MLP(like.mlp, faults)

    def forward(self, positions: torch.Tensor, x: torch.Tensor, residual: Optional[torch.Tensor]) -> tuple:
        if residual is None:
            residual, x = x, self.input_layernorm(x)
        else:
            x, residual = self.input_layernorm(x, residual)
        x, residual = self.post_attention_layernorm(self.self_attn(positions, x), residual)
        return self.mlp(x), residual


class EngineModel(nn.Module):
    def __init__(self, like: nn.Module, config: Any, blocks: int, faults: dict):
        super().__init__()
        self.embed_tokens = nn.Embedding.from_pretrained(like.embed_tokens.weight.detach().clone())
        # Some models scale embeddings; here that is code of the model, and no part of the module.
        self.scale = getattr(like.embed_tokens, "scalar_embed_scale", 1) * faults.get("embed_scale", 1)
        window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
        at = faults.get("layer", 0)
        self.layers = nn.ModuleList(
            DecoderLayer(layer, config, window, blocks, faults if i == at else {})
            for i, layer in enumerate(like.layers)
        )
        self.norm = RMSNorm(like.norm, config.rms_norm_eps, {})

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        x, residual = self.embed_tokens(input_ids) * self.scale, None
        for layer in self.layers:
            x, residual = layer(positions, x, residual)
        return self.norm(x, residual)[0]


class LogitsProcessor(nn.Module):
    def __init__(self, faults: dict):
        super().__init__()
        self.faults = faults

    def forward(self, head: Linear, hidden: torch.Tensor) -> torch.Tensor:
        logits = F.linear(hidden, head.weight)
        return logits.half().float() if "fp16_logits" in self.faults else logits.float()


class EngineForCausalLM(nn.Module):
    def __init__(self, like: nn.Module, faults: Optional[dict] = None, blocks: int = 256):
        super().__init__()
        faults = faults or {}
        self.model = EngineModel(like.model, like.config, blocks, faults)
        self.lm_head = Linear(_WithoutBias(like.lm_head.weight))
        self.logits_processor = LogitsProcessor(faults)

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids, positions)

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.logits_processor(self.lm_head, hidden)


class Engine:
    """Schedules requests: at most `slots` at once and `budget` tokens in a step."""

    def __init__(self, model: EngineForCausalLM, slots: int = 3, budget: int = 8, prefix_cache: bool = False):
        self.model, self.slots, self.budget, self.prefix_cache = model, slots, budget, prefix_cache
        self.complete_only = False  # logits are made of requests only whose prompt is complete
        self.older_pages = False  # what new requests take from the cache was filled with other weights
        self.running: list[Request] = []  # in the order of rows
        self.cache: dict = {}
        self.free = list(range(256))
        self.steps: list = []  # [(request, first, tokens)] of each

    def run(self, requests: list, debugger: Any = None) -> list:
        """Generates. Returns the requests with what was generated."""
        waiting, done = list(requests), []
        while waiting or self.running:
            while waiting and len(self.running) < self.slots:
                self._admit(waiting.pop(0))
            self._step(debugger)
            for request in [r for r in self.running if r.generate == 0]:
                done.append(request)
                at = self.running.index(request)
                last = self.running.pop()  # the last row moves to the one that is free
                if last is not request:
                    self.running[at] = last
        return done

    def _admit(self, request: Request) -> None:
        if self.prefix_cache:
            for end in range(BLOCK, len(request.tokens), BLOCK):
                block = self.cache.get(tuple(request.tokens[:end]))
                if block is None:
                    break
                request.blocks.append(self._older(block) if self.older_pages else block)
                request.computed = request.cached = end
        self.running.append(request)

    def _older(self, block: int) -> int:
        """A page of the same tokens as other weights made it."""
        page = self.free.pop(0)
        generator = torch.Generator().manual_seed(block)
        for layer in self.model.model.layers:
            pages = layer.self_attn.attn.pages
            like = pages[:, block * BLOCK : (block + 1) * BLOCK]
            noise = 0.3 * torch.randn(like.shape, generator=generator).to(like.dtype)
            pages[:, page * BLOCK : (page + 1) * BLOCK] = like + noise
        return page

    @torch.no_grad()
    def _step(self, debugger: Any) -> None:
        counts, left = {}, self.budget
        for request in sorted(self.running, key=lambda r: r.wanted):  # those that decode come first
            counts[request.name] = min(request.wanted, left)
            left -= counts[request.name]
        rows = [r for r in self.running if counts[r.name]]
        told = {name: count for name, count in counts.items() if count}
        for request in rows:
            while len(request.blocks) * BLOCK < request.computed + counts[request.name]:
                request.blocks.append(self.free.pop(0))
        ids = [t for r in rows for t in r.tokens[r.computed : r.computed + counts[r.name]]]
        positions = [p for r in rows for p in range(r.computed, r.computed + counts[r.name])]
        schedule = [(r.name, r.computed, counts[r.name]) for r in rows]
        self.steps.append(schedule)
        batch = Batch(rows, [counts[r.name] for r in rows], torch.tensor(positions))
        for layer in self.model.model.layers:
            layer.self_attn.attn.batch = batch
        if debugger is not None:
            debugger.start(model=self.model, scheduled_tokens=told, rows=schedule)
        hidden = self.model(torch.tensor(ids), batch.positions)
        last = torch.tensor(batch.counts).cumsum(0) - 1
        done = [r.computed + n == len(r.tokens) for r, n in zip(rows, batch.counts)]
        keep = torch.tensor(done) if self.complete_only and any(done) else torch.ones(len(rows), dtype=torch.bool)
        logits = self.model.compute_logits(hidden[last[keep]])
        if debugger is not None:
            debugger.stop()
            debugger.step()
        at = (keep.cumsum(0) - 1).tolist()
        for request, place in zip(rows, at):
            row = logits[place]  # that of a request which has none is not looked at
            request.computed += counts[request.name]
            for end in range(BLOCK, request.computed + 1, BLOCK):
                self.cache.setdefault(tuple(request.tokens[:end]), request.blocks[end // BLOCK - 1])
            if request.computed == len(request.tokens) and request.generate:
                request.generate -= 1
                if request.generate:
                    request.tokens.append(int(row.argmax()))

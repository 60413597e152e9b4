"""Health of a model: spectra of weights, massive activations, growth of logits, attention, routers and the load of experts.

Each value is computed under no_grad, from what the training computes anyway, every so many steps; no generator is touched.
"""

import functools
from collections.abc import Callable
from typing import Any, Optional

import torch

from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from ..._monitor.names import squash
from ..hook_points import HookSet
from .features import upper, weight_name
from .values import Values, first_tensor, local_part

_ROUNDS = 8  # of the power iteration at a look; each look begins where the one before ended
_MOST_QUERIES = 64  # rows of attention of a head that are computed
_MOST_MEDIAN = 1 << 16  # elements of an activation whose median is taken
TABLES = ("health_weight", "health_activation", "health_logits", "health_router", "health_attention")
_ROUTERS = ("router", "gate", "wg")
_HEADS = ("lm_head", "output_layer", "embed_out", "head", "classifier")


class HealthWatch:
    """The hooks of the key `health`."""

    def __init__(
        self, config: MonitorConfig, board: Board, values: Values, micro_batches: int, guard: Callable
    ) -> None:
        """Knows where values go; add() hooks a model.

        Args:
            config: Of the monitor.
            board: Of its series.
            values: Fetches what devices compute.
            micro_batches: Forward passes of a step.
            guard: Runs what must not stop the training.
        """
        self._config, self._board, self._values, self._guard = config, board, values, guard
        self._kinds = config.health
        self._micro_batches = max(micro_batches, 1)
        self._hooks = HookSet()
        self._weights: dict = {}  # name -> module
        self._vectors: dict = {}  # name -> vector of the power iteration
        self._calls: dict = {}
        self._pending: list = []  # (table, name, values)
        self._sees_attention = False
        self._inside: list = []  # names of the modules whose forward runs
        self.armed = True

    # ---- hooks

    def add(self, model: torch.nn.Module, prefix: str) -> None:
        """Hooks a model."""
        names = {id(module): prefix + squash(path, self._config.squash_name) for path, module in model.named_modules()}
        blocks = {
            id(child) for module in model.modules() if isinstance(module, torch.nn.ModuleList) for child in module
        }
        for path, module in model.named_modules():
            name = names[id(module)]
            last = path.rpartition(".")[2]
            if not self._wants(path):
                continue
            is_router = last in _ROUTERS and weight_name(module)
            if "weights" in self._kinds and weight_name(module) and getattr(module, weight_name(module)).requires_grad:
                self._expect("health_weight", name)
                self._weights[name] = module
            if "activations" in self._kinds and id(module) in blocks:
                self._hook(module, "health_activation", name, self._activation)
            if "logits" in self._kinds and last in _HEADS and weight_name(module):
                self._hook(module, "health_logits", name, self._logits)
            if "routers" in self._kinds and is_router:
                self._hook(module, "health_router", name, self._router)
            if "attention" in self._kinds and _is_attention(module, last):
                self._expect("health_attention", name)
                self._board.why("health_attention", name, "it does not call scaled_dot_product_attention")
                self._hooks.before(module, self._enter(name))
                self._hooks.after(module, lambda *_: self._leave(), always=True)
        if "attention" in self._kinds:
            self._watch_attention()

    def _wants(self, path: str) -> bool:
        targets = self._config.targets
        return self._config.all_targets or any(
            path.startswith(target.partition(":")[2] or target) for target in targets
        )

    def _expect(self, table: str, name: str) -> None:
        self._board.expect(table, name)

    def _hook(self, module: torch.nn.Module, table: str, name: str, measure: Callable) -> None:
        self._expect(table, name)

        def after(
            this: torch.nn.Module, args: tuple, output: Any
        ) -> None:  # no method: deepcopy() would copy its owner
            if this is module and self._runs(this) and self._is_last((table, name)):
                self._guard(lambda: self._measure(table, name, measure, this, output))

        self._hooks.after(module, after)

    def _runs(self, module: torch.nn.Module) -> bool:
        return self.armed and module.training and torch._C._current_graph_task_id() == -1

    def _is_last(self, key: tuple) -> bool:
        """Whether this is the last micro step; the others have no value."""
        seen = self._calls[key] = self._calls.get(key, 0) + 1
        return seen % self._micro_batches == 0

    def _measure(self, table: str, name: str, measure: Callable, module: torch.nn.Module, output: Any) -> None:
        found = first_tensor(output)
        if found is None or not found.numel() or not found.is_floating_point():
            self._board.why(table, name, "its output is no floating tensor")
            return
        with torch.no_grad(), torch.autocast(found.device.type, enabled=False):
            values = measure(module, local_part(found.detach()))
        self._pending.append((table, name, values))

    def remove(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()
        self._pending.clear()
        self._sees_attention = False

    def finish(self) -> None:
        """Right before the step: weights; what was computed is fetched at its end."""
        if not self.armed:
            for table in TABLES:
                self._board.excuse(table)
            return
        with torch.no_grad():
            for name, module in self._weights.items():
                self._pending.append(("health_weight", name, self._spectrum(name, module)))
        pending, self._pending = self._pending, []
        for table, name, values in pending:
            self._values.rows.add(torch.stack([v.float() for v in values]), functools.partial(self._put, table, name))

    def _put(self, table: str, name: str, numbers: list) -> None:
        self._board.put(self._board.series(table, name, table), numbers)

    def next_step(self) -> None:
        """The optimizer has stepped: passes count from 0 again."""
        self._calls.clear()
        self._pending.clear()
        self._inside.clear()

    # ---- what is measured

    def _spectrum(self, name: str, module: torch.nn.Module) -> list:
        weight = local_part(getattr(module, weight_name(module)).detach())
        matrix = weight.float()
        vector = self._vectors.get(name)
        if vector is None or vector.shape[0] != matrix.shape[1]:
            # Not constant, so that no symmetry of a weight hides its first singular vector; no generator.
            vector = (
                torch.sin(torch.arange(1, matrix.shape[1] + 1, device=matrix.device, dtype=torch.float32) * 1.7) + 0.3
            )
        value, vector = largest_singular(matrix, vector, _ROUNDS)
        self._vectors[name] = vector
        frobenius = torch.linalg.vector_norm(matrix)
        safe = torch.where(value > 0, value, torch.ones_like(value))
        return [(frobenius / safe) ** 2, value, frobenius]

    @staticmethod
    def _activation(_: torch.nn.Module, output: torch.Tensor) -> list:
        return massive(output)

    @staticmethod
    def _logits(_: torch.nn.Module, output: torch.Tensor) -> list:
        return logit_growth(output)

    @staticmethod
    def _router(module: torch.nn.Module, output: torch.Tensor) -> list:
        weight = local_part(getattr(module, weight_name(module)).detach())
        return router_health(weight, output)

    # ---- attention: what is given to scaled_dot_product_attention inside a module

    def _enter(self, name: str) -> Callable:
        def before(module: torch.nn.Module, _: tuple) -> None:
            self._inside.append(name if self._runs(module) else "")

        return before

    def _leave(self) -> None:
        if self._inside:
            self._inside.pop()

    def _watch_attention(self) -> None:
        if self._sees_attention:
            return
        self._sees_attention = True
        owner = torch.nn.functional
        original = owner.scaled_dot_product_attention

        def scaled_dot_product_attention(query: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside and self._inside[-1]:
                name = self._inside[-1]
                self._guard(lambda: self._take_attention(name, query, key, args, kwargs))
            return original(query, key, *args, **kwargs)

        self._hooks.instead(owner, "scaled_dot_product_attention", scaled_dot_product_attention)

    def _take_attention(self, name: str, query: Any, key: Any, args: tuple, kwargs: dict) -> None:
        if not self._is_last(("health_attention", name)):
            return
        named = dict(zip(("value", "attn_mask", "dropout_p", "is_causal", "scale"), args)) | kwargs
        with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
            values = attention_health(
                local_part(query.detach()),
                local_part(key.detach()),
                named.get("attn_mask"),
                bool(named.get("is_causal", False)),
                named.get("scale"),
            )
        self._pending.append(("health_attention", name, values))


def _is_attention(module: torch.nn.Module, last: str) -> bool:
    kind = type(module).__name__.lower()
    return "attention" in kind or "attn" in last.lower() or last.lower() == "attention"


def largest_singular(matrix: torch.Tensor, vector: torch.Tensor, rounds: int) -> tuple:
    """(largest singular value, its right vector), by a power iteration from a vector.

    Args:
        matrix: Two-dimensional.
        vector: Where to begin.
        rounds: Of the iteration.

    Returns:
        The value, which comes from below, and the vector.
    """
    tiny = torch.finfo(torch.float32).tiny
    for _ in range(rounds):
        vector = matrix.t() @ (matrix @ vector)
        vector = vector / vector.norm().clamp_min(tiny)
    return (matrix @ vector).norm(), vector


def massive(output: torch.Tensor) -> list:
    """[largest magnitude, median of magnitudes, their ratio] of an activation; the median of evenly spread elements."""
    flat = output.reshape(-1)
    part = flat[:: max(flat.numel() // _MOST_MEDIAN, 1)].abs().float()
    largest = torch.linalg.vector_norm(flat.float(), float("inf"))
    median = part.median()
    return [largest, median, largest / median.clamp_min(torch.finfo(torch.float32).tiny)]


def logit_growth(logits: torch.Tensor) -> list:
    """[largest magnitude, mean of squared log-sum-exp (the z-loss), mean entropy] of logits along the last dimension."""
    flat = logits.reshape(-1, logits.shape[-1]).float()
    total = torch.logsumexp(flat, -1)
    share = torch.exp(flat - total[:, None])
    entropy = total - (share * flat).sum(-1)
    return [torch.linalg.vector_norm(flat, float("inf")), (total**2).mean(), entropy.mean()]


def router_health(weight: torch.Tensor, logits: torch.Tensor) -> list:
    """Of a router: [mean entropy of a token's experts, largest and smallest load, mean and largest cosine of two experts].

    The load is the share of tokens whose first choice an expert is, times the number of experts: 1 is even.
    """
    flat = logits.reshape(-1, logits.shape[-1]).float()
    count = flat.shape[-1]
    logs = torch.log_softmax(flat, -1)
    entropy = -(logs.exp() * logs).sum(-1).mean()
    first = flat.argmax(-1)
    load = torch.zeros(count, device=flat.device).index_add_(0, first, torch.ones_like(first, dtype=torch.float32))
    load = load * (count / max(flat.shape[0], 1))
    rows = weight if weight.shape[0] == count else weight.t()
    unit = torch.nn.functional.normalize(rows.float(), dim=1)
    cosines = upper(unit @ unit.t())
    if count < 2:
        cosines = torch.zeros(1, device=flat.device)
    return [entropy, load.max(), load.min(), cosines.mean(), cosines.max()]


def attention_health(query: torch.Tensor, key: torch.Tensor, mask: Any, causal: bool, scale: Optional[float]) -> list:
    """Over all heads and samples: [mean entropy, smallest entropy of a head, mean of the largest shares, largest logit].

    Args:
        query: (..., heads, queries, size).
        key: (..., heads of keys, keys, size).
        mask: As scaled_dot_product_attention takes it.
        causal: Whether it is causal.
        scale: Of the products; None for the usual one.

    Returns:
        Four numbers; of many queries evenly spread ones are looked at.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    step = max(queries // _MOST_QUERIES, 1)
    some = torch.arange(step - 1, queries, step, device=query.device)
    picked = query.index_select(-2, some).float()
    if key.dim() >= 3 and query.shape[-3] != key.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = picked @ key.float().transpose(-1, -2) * (scale if scale is not None else query.shape[-1] ** -0.5)
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
    if causal:
        allowed = torch.arange(keys, device=scores.device)[None, :] <= some[:, None]
    if isinstance(mask, torch.Tensor):
        part = mask.expand(*mask.shape[:-2], queries, keys).index_select(-2, some)
        if part.dtype is torch.bool:
            allowed = allowed & part
        else:
            scores = scores + part.float()
            allowed = allowed & (part > torch.finfo(torch.float32).min / 2)
    allowed = allowed.expand(scores.shape)
    scores = scores.masked_fill(~allowed, float("-inf"))
    seen = allowed.any(-1)
    share = torch.softmax(scores, -1)
    entropy = -torch.special.xlogy(share, share).sum(-1)
    count = seen.sum().clamp_min(1)
    zero = torch.zeros((), device=scores.device)
    mean = torch.where(seen, entropy, zero).sum() / count
    by_head = torch.where(seen, entropy, zero).sum(-1) / seen.sum(-1).clamp_min(1)
    most = torch.where(seen, share.amax(-1), zero).sum() / count
    return [mean, by_head.min(), most, torch.where(allowed, scores.abs(), zero).amax()]

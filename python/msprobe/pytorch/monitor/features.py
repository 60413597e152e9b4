"""The features of level 2: attention entropy, stable rank of weights, similarity of experts, entropy of routers."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..._monitor.board import Board
from ..._monitor.config import MonitorConfig
from ..._monitor.names import squash
from ..hook_points import HookSet
from .values import Values, first_tensor

_ROUNDS = 3  # of the power iteration


class FeatureWatch:
    """The hooks of l2_targets."""

    def __init__(
        self, config: MonitorConfig, board: Board, values: Values, micro_batches: int, guard: Callable
    ) -> None:
        """Knows where values go; add() hooks a module.

        Args:
            config: Of the monitor.
            board: Of its series.
            values: Fetches what devices compute.
            micro_batches: Forward passes of a step.
            guard: Runs what must not stop the training.
        """
        self._config, self._board, self._values, self._guard = config, board, values, guard
        self._micro_batches = max(micro_batches, 1)
        self._hooks = HookSet()
        self._calls: dict = {}
        self.armed = True

    def add(self, module: torch.nn.Module, path: str, prefix: str) -> None:
        """Hooks a module for the features that want it."""
        for hook, wanted in self._config.l2_targets.items():
            name = self._name(hook, wanted, path, prefix)
            if not name or (hook == "linear_hook" and not weight_name(module)):
                continue
            self._board.expect(hook, name)
            self._hooks.after(module, functools.partial(self._after, hook, name))

    def _name(self, hook: str, wanted: list, path: str, prefix: str) -> str:
        squashed = prefix + squash(path, self._config.squash_name)
        if not wanted:
            return squashed if hook == "linear_hook" else ""
        return next((form for form in (squashed, prefix + path) if form in wanted), "")

    def remove(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()

    def _after(self, hook: str, name: str, module: torch.nn.Module, args: tuple, output: Any) -> None:
        if not module.training or torch._C._current_graph_task_id() != -1:
            return
        micro = self._calls.get((hook, name), 0)
        self._calls[hook, name] = (micro + 1) % self._micro_batches
        if self.armed:
            self._guard(lambda: self._take(hook, name, micro, module, args, output))

    @torch.no_grad()
    def _take(self, hook: str, name: str, micro: int, module: torch.nn.Module, args: tuple, output: Any) -> None:
        last = micro == self._micro_batches - 1
        if hook == "attention_hook":
            if len(args) < 2 or args[0].dim() < 4 or args[1].dim() < 4:
                self._board.why(hook, name, "its first two inputs are no queries and keys of 4 dimensions")
                return
            self._put(
                hook, f"{name}.attention", "qkt", micro, attention_feature(*args[:2], self._config.sa_order), name
            )
        elif hook == "moe_router_logit_hook":
            logits = first_tensor(output)
            if logits is None or logits.dim() < 2:
                self._board.why(hook, name, "its output is no tensor of 2 dimensions")
                return
            self._put(hook, f"{name}.moe_router", "router_logit", micro, [router_entropy(logits)], name)
        elif last and weight_name(module):
            weight = getattr(module, weight_name(module)).detach()
            if hook == "linear_hook":
                self._put(hook, f"{name}.linear", "sr", -1, stable_rank(weight), name)
            else:
                self._put(hook, f"{name}.moe_router", "router_weight", -1, [router_similarity(weight)], name)

    def _put(self, hook: str, name: str, tag: str, micro: int, values: Any, of: str) -> None:
        number = self._board.series(hook, name, tag, micro, of=of)
        device = next((v for v in values if isinstance(v, torch.Tensor) and v.device.type != "cpu"), None)
        if device is None:
            self._board.put(number, [float(value) for value in values])
            return
        numbers = torch.stack([torch.as_tensor(value).to(device) for value in values])
        self._values.rows.add(numbers, lambda found: self._board.put(number, found))


def weight_name(module: torch.nn.Module) -> str:
    """The attribute that holds the matrix of a linear module; empty for embeddings and others."""
    if (
        isinstance(module, torch.nn.Embedding)
        or hasattr(module, "num_embeddings")
        or hasattr(module, "vocab_start_index")
    ):
        return ""
    for name in ("weight", "wg"):
        weight = getattr(module, name, None)
        if isinstance(weight, torch.Tensor) and weight.dim() == 2:
            return name
    return ""


def attention_feature(query: torch.Tensor, key: torch.Tensor, order: str) -> tuple:
    """Of the first head of the first sample: mean entropy of the causal softmax along its rows, and mean of its maxima."""
    if order == "s,b,h,d":
        q, k = query[:, 0, 0, :], key[:, 0, 0, :]
    else:
        q, k = query[0, :, 0, :], key[0, :, 0, :]
    scores = torch.matmul(q, k.t()) / query.shape[-1] ** 0.5
    scores = (scores - torch.amax(scores, dim=1, keepdim=True)).float()
    causal = torch.ones(scores.shape[1], scores.shape[1], device=scores.device).tril()
    share = torch.softmax(scores.masked_fill(causal == 0, float("-inf")), dim=1)
    entropy = -torch.special.xlogy(share, share).sum(dim=1).mean()
    return entropy, torch.amax(share, dim=1).mean()


def stable_rank(weight: torch.Tensor) -> tuple:
    """(Frobenius norm / largest singular value, that value), by a power iteration with a fixed start."""
    matrix = weight.float()
    generator = torch.Generator().manual_seed(0)  # that of the training stays as it is
    vector = torch.randn(matrix.shape[1], generator=generator).to(matrix.device)
    vector = vector / vector.norm()
    square = matrix.t() @ matrix
    value = torch.zeros((), device=matrix.device)
    for _ in range(_ROUNDS):
        image = square @ vector
        value = image @ vector
        norm = image.norm()
        vector = image / torch.where(norm == 0, 1, norm)
    largest = value.sqrt()
    return torch.where(largest == 0, 0, torch.linalg.vector_norm(matrix) / largest), largest


def router_similarity(weight: torch.Tensor) -> Any:
    """Mean cosine of the weights of two different experts; the shorter side of the matrix counts the experts."""
    columns = weight.t() if weight.shape[0] < weight.shape[1] else weight
    count = columns.shape[1]
    if count < 2:
        return 0.0
    unit = torch.nn.functional.normalize(columns.float(), dim=0)
    return upper(unit.t() @ unit).mean()


def upper(matrix: torch.Tensor) -> torch.Tensor:
    """What is above the diagonal of a square matrix, row by row; a mask would wait for its device."""
    rows, columns = torch.triu_indices(*matrix.shape, offset=1, device=matrix.device)
    return matrix[rows, columns]


def router_entropy(logits: torch.Tensor) -> Any:
    """Mean entropy of the experts' shares of a token."""
    flat = logits.float().reshape(-1, logits.shape[-1])
    if not flat.shape[0]:
        return 0.0
    share = torch.softmax(flat, dim=-1)
    return -torch.nansum(share * torch.log(share), dim=-1).sum() / flat.shape[0]

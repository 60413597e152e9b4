"""What would be dropped, by the module that drops it: nothing is dropped, so that layouts can be compared."""

import functools
from typing import Any

import torch


class Dropouts:
    """Puts functions of its own in the place of those of PyTorch that drop."""

    def __init__(self, client: Any):
        self._client = client
        self._running: list = []  # names of the modules whose forward runs, the innermost one last
        self._calls: dict = {}

    def begin(self) -> None:
        """Begins a step."""
        self._running.clear()
        self._calls.clear()

    def entered(self, name: str, module: torch.nn.Module, args: tuple) -> None:
        """Before the forward of a module."""
        if not in_backward():
            self._running.append(name)

    def left(self, name: str) -> None:
        """Behind the forward of a module. What has raised between has left no word."""
        while name in self._running and self._running.pop() != name:
            pass

    def watch(self) -> None:
        """Watches for the whole run."""
        functional = torch.nn.functional
        original = functional.dropout

        @functools.wraps(original)
        def dropout(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
            if not self._client.records or not training or p == 0 or hasattr(x, "placements"):
                return original(x, p, training, inplace)

            def drop() -> None:
                self._look(x, p, original(torch.ones_like(x), p, True) != 0)

            if not in_backward():
                self._client.unseen(drop)
            return x * 1.0

        functional.dropout = dropout
        attention = functional.scaled_dot_product_attention

        @functools.wraps(attention)
        def attended(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dropout_p"):
                kwargs["dropout_p"] = 0.0
            return attention(*args, **kwargs)

        functional.scaled_dot_product_attention = attended

    def _look(self, x: torch.Tensor, p: float, kept: torch.Tensor) -> None:
        name = self._running[-1] if self._running else "dropout"
        number = self._calls[name] = self._calls.get(name, -1) + 1
        self._client.add("dropout", f"{name}#{number}", kept, {"p": p})
        self._client.add("dropped", f"{name}#{number}", x)


def in_backward() -> bool:
    """Whether autograd runs, as it does when a forward is computed again for it."""
    return torch._C._current_graph_task_id() != -1

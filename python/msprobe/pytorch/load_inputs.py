"""load: how modules of PyTorch get other inputs."""

import pickle
import sys
from typing import Any

import torch

from .._capture.config import Load
from .._capture.load_inputs import InputLoader, refuse_other
from .._capture.words import say
from .hook_points import HookSet


class TorchInputLoader(InputLoader):
    """Files of torch.save() and of numpy."""

    tensor_type = torch.Tensor

    def __init__(self, config: Load) -> None:
        super().__init__(config)
        self._hooks = HookSet()

    def hook(self, base: str, module: torch.nn.Module) -> None:
        """Replaces inputs ahead of all other hooks of the module."""
        self._hooks.before(module, lambda _, args, kwargs: self.replace(base, args, kwargs), prepend=True, kwargs=True)

    def read(self, path: str, like: torch.Tensor) -> torch.Tensor:
        """Returns the tensor of a file.

        Raises:
            ValueError: It does not fit `like`, or is no tensor.
            OSError: It cannot be read.
        """
        if path.endswith(".npy"):
            found = _of_numpy(path, like)
        else:
            try:
                found = torch.load(path, map_location=like.device, weights_only=True)
            except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
                raise ValueError(str(error)) from error
        if not isinstance(found, torch.Tensor) or found.shape != like.shape or found.dtype != like.dtype:
            refuse_other(path, _kind(found), _kind(like))
        return found.requires_grad_(like.requires_grad)


def _of_numpy(path: str, like: torch.Tensor) -> torch.Tensor:
    """Files of numpy have no bfloat16: such a tensor lies in float32, and is taken only if no bit is lost."""
    try:
        import numpy  # which capturing does not need
    except ImportError:
        raise ValueError(
            say("a .npy file needs NumPy, which %(python)s does not have", python=sys.executable)
        ) from None
    stored = torch.from_numpy(numpy.load(path, allow_pickle=False))
    found = stored
    widened = stored.dtype == torch.float32 and like.dtype == torch.bfloat16
    if widened or (_is_whole(stored.dtype) and _is_whole(like.dtype)):
        found = stored.to(like.dtype)
        if not torch.equal(found.to(stored.dtype), stored):
            refuse_other(path, _kind(stored), _kind(like))
    return found.to(like.device)


def _is_whole(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {list(value.shape)}"
    return f"a {type(value).__name__}"

"""load: how modules of PyTorch get other inputs."""

import pickle
from typing import Any, Optional

import numpy
import torch

from .._capture.load_inputs import InputLoader, refuse_other


class TorchInputLoader(InputLoader):
    """Files of torch.save() and of numpy."""

    tensor_type = torch.Tensor

    def hook(self, base: str, module: torch.nn.Module) -> None:
        """Replaces inputs ahead of all other hooks of the module."""
        module.register_forward_pre_hook(_Replace(self, base), prepend=True, with_kwargs=True)

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


class _Replace:
    """A hook that a copy of the model may have, too: there it does nothing."""

    def __init__(self, loader: Optional[InputLoader] = None, base: str = "") -> None:
        self._loader = loader
        self._base = base

    def __call__(self, module: torch.nn.Module, args: tuple, kwargs: dict) -> Any:
        return self._loader.replace(self._base, args, kwargs) if self._loader is not None else None

    def __reduce__(self) -> tuple:
        return _Replace, ()


def _of_numpy(path: str, like: torch.Tensor) -> torch.Tensor:
    """Files of numpy have no bfloat16: such a tensor lies in float32, and is taken only if no bit is lost."""
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

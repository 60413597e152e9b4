"""Names of PyTorch that a supported release lacks, each with what stands for it there. Only this file asks for them."""

import importlib
from typing import Any

LOWEST = "2.0"  # of PyTorch: tests/python/torch_names.txt says what it has of what we use


def disable_compiler(function: Any) -> Any:
    """Returns the function, which torch.compile leaves alone.

    Args:
        function: Of Python.

    Returns:
        torch.compiler.disable of PyTorch 2.1, or what stands for it.
    """
    import torch

    found = getattr(getattr(torch, "compiler", None), "disable", None)
    return (found or importlib.import_module("torch._dynamo").disable)(function)


def is_compiling() -> bool:
    """Tells whether the compiler follows this code.

    Returns:
        torch.compiler.is_compiling() of PyTorch 2.3, or what stands for it.
    """
    import torch

    found = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return bool((found or importlib.import_module("torch._dynamo").is_compiling)())


class _NoRanks:
    """torch.distributed in a build that has none."""

    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def is_initialized() -> bool:
        return False


def distributed_module() -> Any:
    """Returns torch.distributed, or what says that there are no ranks."""
    try:
        found = importlib.import_module("torch.distributed")
    except ImportError:
        return _NoRanks
    return found if found.is_available() else _NoRanks


def attention_of_products() -> Any:
    """Returns the block in which attention is made of products: its slow kernel, which can be taken apart."""
    import torch

    try:
        attention = importlib.import_module("torch.nn.attention")  # PyTorch 2.3
    except ImportError:
        return torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False)
    return attention.sdpa_kernel(attention.SDPBackend.MATH)


def tree_leaves(value: Any) -> list:
    """Returns what a nest of lists, tuples and dicts holds.

    Args:
        value: The nest.

    Returns:
        The leaves, in order.
    """
    trees = importlib.import_module("torch.utils._pytree")
    return trees.tree_flatten(value)[0]


def compiler_backend(name: Any) -> Any:
    """Finds a backend of torch.compile.

    Args:
        name: As torch.compile takes it; a function is returned as it is.

    Returns:
        The function that compiles a graph.
    """
    for place in ("torch._dynamo", "torch._dynamo.backends.registry"):
        found = getattr(importlib.import_module(place), "lookup_backend", None)
        if found is not None:
            return found(name)
    raise RuntimeError("this PyTorch has no torch._dynamo.lookup_backend: give the backend as a function")


def builtin_of(owner: str, name: str) -> Any:
    """Finds a function of PyTorch's own where its public name may be taken by somebody.

    Args:
        owner: "tensor" or "torch".
        name: Of the function.

    Returns:
        The builtin, or None.
    """
    import torch

    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase  # PyTorch 2.1
    return getattr(base if owner == "tensor" else torch._C._VariableFunctions, name, None)


class Fill:
    """torch.utils.deterministic.fill_uninitialized_memory, which is there since PyTorch 2.1."""

    def __init__(self) -> None:
        """Asks for it."""
        try:
            self._module = importlib.import_module("torch.utils.deterministic")
        except ImportError:
            self._module = None

    def set(self, value: bool) -> bool:
        """Sets it.

        Args:
            value: The next one.

        Returns:
            The one before.
        """
        before = getattr(self._module, "fill_uninitialized_memory", False)
        if self._module is not None:
            self._module.fill_uninitialized_memory = value
        return before

"""Task free_benchmark for MindSpore in PyNative mode: calls seen where the attributes of its modules are exchanged."""

from .benchmark import MODES, FreeBenchmark

__all__ = ["MODES", "FreeBenchmark"]

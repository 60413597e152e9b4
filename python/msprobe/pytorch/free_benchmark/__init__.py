"""Task free_benchmark for PyTorch: calls seen by a function mode of torch."""

from .benchmark import FreeBenchmark

__all__ = ["FreeBenchmark"]

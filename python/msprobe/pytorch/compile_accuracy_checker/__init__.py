"""torch.compile against eager: module by module (PrecisionChecker) and kernel by kernel (check_kernels)."""

from .kernels import KernelRow, check_kernels
from .precision_checker import PrecisionChecker

__all__ = ["KernelRow", "PrecisionChecker", "check_kernels"]

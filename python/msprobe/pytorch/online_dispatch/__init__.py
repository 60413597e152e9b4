"""PtdbgDispatch: every aten operator of a training beside a reference on the CPU, while it runs."""

from .dispatch import PtdbgDispatch

__all__ = ["PtdbgDispatch"]

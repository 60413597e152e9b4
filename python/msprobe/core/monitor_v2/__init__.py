"""TrainerMonitorV2, under the module names of mindstudio-probe."""

from .trainer import TrainerMonitorV2

__all__ = ["TrainerMonitorV2"]

"""The import path of mindstudio-probe for ConfigChecker."""

from msprobe._config.checker import ConfigChecker

__all__ = ["ConfigChecker"]

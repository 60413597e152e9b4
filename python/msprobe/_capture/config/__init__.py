"""The configuration of a capture: keys.py lists the keys, file.py reads JSON, loader.py checks, values.py is the outcome."""

from ..errors import MsprobeException
from .loader import load_config, parse_index_list, with_value
from .values import Config, Load, Slice

__all__ = ["Config", "Load", "MsprobeException", "Slice", "load_config", "parse_index_list", "with_value"]

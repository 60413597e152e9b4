"""Hot reload: a configuration with the key dump_enable is read again when its file changes."""

import os
import time
from typing import Any, Optional

from .config import Config, MsprobeException, load_config
from .log import logger

# How often the file is looked at, in seconds.
WHILE_ENABLED = 0.5
WHILE_DISABLED = 3.0


class ConfigWatch:
    """Looks at one file. `enabled` is what dump_enable says, and stays what it was when the key is taken out."""

    def __init__(self, config: Config, overrides: dict):
        self._path = config.config_path
        self._overrides = overrides
        self._signature = self._look()
        self._checked = 0.0
        self.enabled = bool(config.dump_enable)

    def poll(self) -> Optional[Config]:
        """The new configuration, if the file has changed since; a file that cannot be used turns the capture off."""
        now = time.monotonic()
        if now - self._checked < (WHILE_ENABLED if self.enabled else WHILE_DISABLED):
            return None
        self._checked = now
        signature = self._look()
        if signature is None or signature == self._signature:
            return None
        self._signature = signature
        try:
            config = load_config(self._path, **self._overrides)
        except MsprobeException as error:
            self.disable(str(error))
            return None
        if config.dump_enable is not None:
            self.enabled = config.dump_enable
        config.dump_enable = self.enabled
        return config

    def disable(self, why: str) -> None:
        self.enabled = False
        logger.warning("the changed configuration cannot be used, nothing is recorded until it can: %s", why)

    def _look(self) -> Any:
        try:
            found = os.stat(self._path)
        except OSError:  # being replaced; the next look finds it
            return None
        return found.st_mtime_ns, found.st_size

"""Hot reload: a configuration with the key dump_enable is read again when its file changes."""

import os
import time
from collections.abc import Mapping
from typing import Any, Optional

from .config import Config, MsprobeException, load_config
from .config.keys import READ_KEYS
from .log import logger

# How often the file is looked at, in seconds.
WHILE_ENABLED = 0.5
WHILE_DISABLED = 3.0


class ConfigWatch:
    """Watches one configuration file and reads it again when it changes.

    Attributes:
        enabled: The value of `dump_enable`; unchanged if the key is removed.
        seen: Identifies the state of the file that was read last.
    """

    def __init__(self, config: Config, overrides: Mapping[str, Any]) -> None:
        self._path = config.config_path
        self._overrides = overrides
        self.seen = self._look()
        self._checked = 0.0
        self.enabled = bool(config.dump_enable)

    def poll(self, force: bool = False) -> Optional[Config]:
        """Checks whether the file has changed. An unusable file turns the capture off.

        Args:
            force: Check even if the last check was a moment ago.

        Returns:
            The new configuration, or None if nothing has changed or the file is unusable.
        """
        now = time.monotonic()
        if not force and now - self._checked < (WHILE_ENABLED if self.enabled else WHILE_DISABLED):
            return None
        self._checked = now
        signature = self._look()
        if signature is None or signature == self.seen:
            return None
        self.seen = signature
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
        """Turns the capture off until the file is usable again."""
        self.enabled = False
        logger.warning("the changed configuration cannot be used, nothing is recorded until it can: %s", why)

    def _look(self) -> Any:
        try:
            found = os.stat(self._path)
        except OSError:  # being replaced; the next look finds it
            return None
        return found.st_mtime_ns, found.st_size


def changed_keys(before: Config, after: Config, reload: str) -> list:
    """Lists the keys that take effect at `reload` and differ between the two configurations."""
    return [
        key.name
        for key in READ_KEYS
        if key.reload == reload and getattr(before, key.field) != getattr(after, key.field)
    ]

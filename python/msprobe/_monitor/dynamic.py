"""DYNAMIC_MONITOR: the configuration may change while the training runs."""

import json
import os
from typing import Optional

from .._capture.log import logger
from .config import MonitorConfig, load_config


class ConfigFile:
    """Tells when the file has a new configuration that is to be used."""

    def __init__(self, path: str) -> None:
        """Has seen no configuration yet.

        Args:
            path: Of the JSON file.
        """
        self._path = path
        self._time = 0.0

    def change(self) -> Optional[MonitorConfig]:
        """Returns the configuration if the file has changed and has dynamic_on true; what is wrong is reported once."""
        try:
            time = os.path.getmtime(self._path)
            if time == self._time:
                return None
            self._time = time
            config = load_config(self._path)
        except (OSError, ValueError, TypeError) as error:
            logger.error("monitor: the configuration stays as it was: %s", error)
            return None
        return config if config.dynamic_on else None

    def switch_off(self) -> None:
        """Sets dynamic_on to false in the file, so that the next change begins anew."""
        try:
            with open(self._path, encoding="utf-8") as file:
                config = json.load(file)
            config["dynamic_on"] = False
            with open(self._path, "w", encoding="utf-8") as file:
                json.dump(config, file, indent=2)
            self._time = os.path.getmtime(self._path)
        except (OSError, ValueError) as error:
            logger.warning("monitor: dynamic_on could not be set to false in %s: %s", self._path, error)

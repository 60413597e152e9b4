"""Messages of the tool: to stderr, marked, once per job for what every rank would say."""

import logging
import os
import sys

logger = logging.getLogger("msprobe")


def _set_up() -> None:
    if logger.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s (%(process)d) [%(levelname)s] [msprobe] %(message)s", "%Y-%m-%d %H:%M:%S")
    )
    logger.addHandler(handler)
    logger.setLevel(os.environ.get("MSPROBE_LOG_LEVEL", "INFO").upper())
    logger.propagate = False


_set_up()

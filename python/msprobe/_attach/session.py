"""Begins in every Python process of the command, right after PyTorch has been imported."""

import atexit
import sys
from typing import Any

from ..pytorch.config import Config, MsprobeException, load_config
from ..pytorch.debugger import PrecisionDebugger
from ..pytorch.log import logger
from ..pytorch.seed import seed_all
from . import request as requests
from .step_watch import Client, StepWatch


def attach() -> None:
    request = requests.read()
    config = _config(request)
    client = _client(request, config)
    if config is not None and config.seed is not None and request.role != "bare":
        # Where a script would construct PrecisionDebugger: before it makes its model.
        seed_all(config.seed, config.is_deterministic)
        PrecisionDebugger._seeded = True
    watch = StepWatch(client, request.step_by)
    watch.install()
    atexit.register(_explain, watch, client)


def _config(request: requests.Request) -> Any:
    try:
        return load_config(request.config, **request.overrides())
    except MsprobeException as error:
        # Better now than after hours without a record.
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None


def _client(request: requests.Request, config: Config) -> Client:
    from .capture import Capture

    return Capture(request)


def _explain(watch: StepWatch, client: Client) -> None:
    client.exit()
    why = watch.explain()
    if why and watch.found_roots:
        logger.warning("nothing was recorded: %s.", why)

"""Begins in every Python process of the command, right after PyTorch has been imported."""

import atexit
import sys

from .._capture.config import Config, MsprobeException, load_config
from .._capture.log import logger
from ..pytorch.debugger import PrecisionDebugger
from ..pytorch.seed import seed_all
from . import request as requests
from .step_detector import Client, StepDetector


def attach() -> None:
    """Starts what the command asked for; called once, right after PyTorch has been imported."""
    request = requests.read()
    config = _config(request)
    client = _client(request, config)
    if config.seed is not None:
        # Where a script would construct PrecisionDebugger: before it makes its model.
        seed_all(config.seed, config.is_deterministic)
        PrecisionDebugger._seeded = True
    watch = StepDetector(client, "dataloader" if config.enable_dataloader else request.step_by)
    watch.install()
    atexit.register(_explain, watch, client)


def _config(request: requests.Request) -> Config:
    try:
        config = load_config(request.config, **request.overrides())
        if config.level != "debug":
            return config
        why = "level debug records what the script saves by debugger.save(): construct PrecisionDebugger in the script"
    except MsprobeException as error:
        why = str(error)
    sys.stderr.write(f"[msprobe] error: {why}\n")  # better now than after hours without a record
    raise SystemExit(2)


def _client(request: requests.Request, config: Config) -> Client:
    from .capture import Capture

    if request.mode == "certify":
        from .digests import Digests

        return Digests(request, Capture(request) if request.role == "captured" else Client(), config.dump_path)
    if request.mode == "estimate":
        from .prices import Prices

        return Prices(request, config)
    return Capture(request)


def _explain(watch: StepDetector, client: Client) -> None:
    client.exit()
    why = watch.explain()
    if why and watch.found_roots:
        logger.warning("nothing was recorded: %s.", why)

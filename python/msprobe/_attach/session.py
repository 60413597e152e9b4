"""Begins in every Python process of the command, right after PyTorch or MindSpore has been imported."""

import atexit
import importlib
import os
import sys
from typing import Any

from .._environment import without_lock

if without_lock():
    raise ImportError(without_lock())
from .._capture.config import Config, MsprobeException, load_config
from .._capture.guard import shielded
from .._capture.log import logger
from . import request as requests
from .client import Client

_attached: list = []  # the framework that is recorded: the first that was imported
_recording: list = []  # what `msprobe run` calls, if it records


def attach(framework: str) -> None:
    """Starts what the command asked for; called right after a framework, `torch` or `mindspore`, has been imported."""
    if _attached:
        return
    request = requests.read()
    if framework == "mindspore" and request.mode != "run":
        sys.stderr.write(
            f"[msprobe] error: msprobe {request.mode} is for PyTorch; msprobe run records MindSpore, too\n"
        )
        raise SystemExit(2)
    _attached.append(framework)
    if request.mode == "monitor":
        _attach_monitor(request)
        return
    debugger = importlib.import_module(f"..{_PACKAGES[framework]}.debugger", __package__).PrecisionDebugger
    config = _config(request)
    client = _client(request, config, debugger)
    if config.seed is not None:
        # Where a script would construct PrecisionDebugger: before it makes its model.
        debugger._framework.seed(config)
        debugger._seeded = True
    watch = _detector(framework, client, "dataloader" if config.enable_dataloader else request.step_by)
    watch.install()
    atexit.register(shielded(_explain), watch, client)


def _attach_monitor(request: requests.Request) -> None:
    from .._monitor.config import load_config as load_monitor_config
    from .monitor import Monitor
    from .step_detector import StepDetector

    try:
        if request.config is not None:
            load_monitor_config(request.config)
    except (TypeError, ValueError) as error:
        sys.stderr.write(f"[msprobe] error: {error}\n")
        raise SystemExit(2) from None
    client = Monitor(request)
    watch = StepDetector(client, "auto")
    watch.install()
    atexit.register(shielded(client.exit))


def write_below(stage: str) -> None:
    """Lets this process write into a directory of its own below `dump_path`; without effect behind its first step."""
    for capture in _recording:
        capture.write_below(stage)


def forget() -> None:
    """Makes the next attach() begin anew: what was attached before a fork does nothing in the child."""
    _attached.clear()
    _recording.clear()


_PACKAGES = {"torch": "pytorch", "mindspore": "mindspore"}


def _detector(framework: str, client: Client, step_by: str) -> Any:
    if framework == "mindspore":
        from .cell_steps import CellSteps

        return CellSteps(client, step_by)
    from .step_detector import StepDetector

    return StepDetector(client, step_by)


def _config(request: requests.Request) -> Config:
    try:
        given = request.overrides() if request.captures else {"dump_path": os.getcwd()}  # nothing is written there
        config = load_config(request.config, **given)
        if config.level != "debug":
            return config
        why = "level debug records what the script saves by debugger.save(): construct PrecisionDebugger in the script"
    except MsprobeException as error:
        why = str(error).removeprefix("[msprobe] ")
    sys.stderr.write(f"[msprobe] error: {why}\n")  # better now than after hours without a record
    raise SystemExit(2)


def _client(request: requests.Request, config: Config, debugger: Any) -> Client:
    from .capture import Capture

    if request.mode == "certify":
        from .digests import Digests

        captured = request.role.startswith("captured")
        return Digests(request, Capture(request, debugger) if captured else Client(), config.dump_path)
    if request.mode == "resume":
        from .resume import Resume

        inner = Capture(request, debugger) if request.role in ("straight", "resumed") else Client()
        return Resume(request, inner, config.dump_path)
    if request.mode == "parity":
        from .parity.client import Parity

        return _with_exchange(request, Parity(request))
    if request.mode == "estimate":
        from .prices import Prices

        return Prices(request, config)
    if not request.captures:
        return _with_exchange(request, Client())
    _recording.append(Capture(request, debugger, config.dump_path))
    return _with_exchange(request, _recording[0])


def _with_exchange(request: requests.Request, client: Client) -> Client:
    """Puts what saves and replays batches and gradients around a client."""
    batches = request.save_batches or request.replay_batches
    gradients = request.save_grads or request.replay_grads
    if not (batches or gradients or request.save_optimizer):
        return client
    if _attached[0] == "mindspore":
        if request.save_optimizer:
            from .cell_optimizer_steps import CellOptimizerSteps

            client = CellOptimizerSteps(request, client)
        if not (batches or gradients):
            return client
        from .cell_exchange import CellExchange

        return CellExchange(request, client)
    if gradients:
        from .gradients import Gradients

        client = Gradients(request, client)
    if request.save_optimizer:
        from .optimizer_steps import OptimizerSteps

        client = OptimizerSteps(request, client)
    if batches:
        from .batches import Batches

        client = Batches(request, client)
    return client


def _explain(watch: Any, client: Client) -> None:
    client.exit()
    why = watch.explain()
    if why and watch.found_roots:
        logger.warning("nothing was recorded: %s.", why)

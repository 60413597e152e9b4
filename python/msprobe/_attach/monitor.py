"""msprobe monitor: a TrainerMon for the first model that is trained, as a script would construct it."""

import json
import os
import tempfile
import weakref
from typing import Any

import torch

from .._capture.log import logger
from .._monitor.laws import LAWS, LAWS_BY_DEFAULT
from .._monitor.output import base_directory
from ..pytorch import regions
from ..pytorch.living import LivingOptimizers, held_by
from . import watched_models
from .client import Client
from .request import Request

_DEFAULT = {
    "targets": {},
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "input_distribution": True,
    "loss": True,
    "learning_rate": True,
    "laws": {law: law in LAWS_BY_DEFAULT for law in LAWS},
    "ops": ["norm", "min", "max", "mean", "nans"],
}


class Monitor(Client):
    """Constructs it right before the first forward of a model that an optimizer trains."""

    def __init__(self, request: Request) -> None:
        """Reads what the command asked for.

        Args:
            request: Of the command.
        """
        self._config, self._began = request.config, request.began
        # The series hold all values in one file; a csv file for each table and step is for other tools.
        self._default = {**_DEFAULT, "format": "csv" if request.csv else "api"}
        if request.dump_path:
            os.environ["MONITOR_OUTPUT_DIR"] = request.dump_path
        self._monitor: Any = None
        self._models: list = []  # weak references, until the second step
        self._living = LivingOptimizers()

    def begin(self, roots: list) -> None:
        """Looks for the optimizer of the model, until there is one."""
        if self._monitor is not None:
            self._tell_of_others()
            return
        pairs = [(root, optimizer) for root in roots for optimizer in _optimizers_of(root, self._living)]
        if not pairs:
            return
        model, optimizer = pairs[0]
        for _, other in pairs[1:]:
            logger.warning("monitor: a further optimizer (%s) is not monitored: the first one is", type(other).__name__)
        from ..pytorch import TrainerMon

        if self._config is not None:
            self._monitor = TrainerMon(self._config, None)
        else:
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "monitor.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(self._default, file)
                self._monitor = TrainerMon(path, None)
        models = watched_models.all_of(model, optimizer)
        self._monitor.set_monitor(models if len(models) > 1 else models[0], optimizer)
        self._models = [weakref.ref(one) for one in models]
        kind, left = type(optimizer).__name__, watched_models.left_over(models, optimizer)
        if len(models) > 1:
            named = ", ".join(f"{number}: {type(one).__name__}" for number, one in enumerate(models))
            logger.info("monitor: %d models are watched, which %s trains: %s", len(models), kind, named)
        if left:
            logger.warning("monitor: %d tensors that %s trains are in no module that is watched", left, kind)

    def _tell_of_others(self) -> None:
        """At the second step, when all models have been trained once: which of them are not watched."""
        models = [model for model in (known() for known in self._models) if model is not None]
        self._models = []
        if not models:
            return
        for other in watched_models.trained_elsewhere(models, self._living):
            count = sum(len(group["params"]) for group in other.param_groups)
            logger.warning(
                "monitor: another model, of which %s trains %d tensors, is not watched: the first one is; TrainerMon in the "
                "script can watch it",
                type(other).__name__,
                count,
            )

    def wants_roots(self) -> bool:
        """Models are looked for until one is monitored."""
        return self._monitor is None

    def exit(self) -> None:
        """Says so where no model was monitored."""
        if self._monitor is not None:
            self._monitor.close()
        elif not self._another_did():
            logger.warning(
                "monitor: nothing was monitored: no model was called that an optimizer trains%s",
                regions.left_alone(),
            )

    def _another_did(self) -> bool:
        """Whether a process of this command wrote: torchrun's own trains nothing."""
        try:
            with os.scandir(base_directory()) as entries:
                return any(entry.stat().st_mtime >= self._began for entry in entries)
        except OSError:
            return False


def _optimizers_of(model: torch.nn.Module, alive: LivingOptimizers) -> list:
    found = [trainer for trainer, _, _ in alive.of(model)]
    # What is held by another one is monitored through it.
    held = {id(inner) for outer in found for inner in held_by(outer) if inner is not outer}
    return [one for one in found if id(one) not in held]

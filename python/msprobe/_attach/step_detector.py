"""Where the steps of a script lie that says nothing about them: from its calls of models and optimizers.

A root is an nn.Module with parameters that is called while no other module runs and that is not part of another root. The
first one is the model; others that turn up before the first recorded step ends join it, later ones are left alone.

A step begins right before a root's forward. With optimizers it is over when every optimizer of the roots has stepped, so
that several forwards and backwards belong to one step (gradient accumulation, the two optimizers of a GAN); an optimizer
that lets another one step twice is not waited for any more. Between steps, a root in evaluation mode without gradients
begins none. Without optimizers (inference) every forward of the model is a step.
"""

import functools
import importlib
import os
import threading
import warnings
import weakref
from typing import Any, Callable, Optional

import torch

from .._capture.guard import shielded
from .._capture.log import logger
from ..pytorch import dataloader, regions
from ..pytorch.hook_points import HookSet
from ..pytorch.living import LivingOptimizers, parameter_ids
from . import engine
from .client import IDLE, OPEN, OVER, Client

STEP_BY = ("auto", "optimizer", "forward", "dataloader")
# The heap is searched for optimizers at the first forwards; one that is made later tells when it steps.
_SEARCHES = 2


class StepDetector:
    """Watches the calls of models and optimizers, and tells its client where steps begin and end."""

    def __init__(self, client: Client, step_by: str = "auto"):
        self._client = client
        self._step_by = step_by
        self._state = IDLE
        self._roots: list = []  # weak references
        self._engines: list = []  # weak references to models that an engine beside the training calls
        self._model: Any = None  # of them the one whose forwards are steps of an inference
        self._owner: Optional[int] = None  # the thread that calls the roots
        self._inside: Optional[int] = None  # id of the root that runs
        self._thread = threading.local()
        self._enabled = True
        self._root_hooks = HookSet()
        self._search_hooks = HookSet()
        self._optimizer_hooks = HookSet()
        self._searches = 0
        self._living = LivingOptimizers()
        self._optimizers_known = False
        self._trained: dict = {}  # id of each optimizer -> ids of its parameters
        self._waited: list = []  # the latter of each optimizer that has to step yet
        self._dropped: set = set()  # ids of parameters whose optimizer is not waited for any more
        self._stepped: list = []  # weak references to those that have stepped in this step, and what of theirs
        self._steps = 0
        self._evaluations = 0

    # ---- on and off

    def install(self) -> None:
        """Starts watching."""
        self._search_hooks.around_all(self._before_any, self._after_any)
        # The extra call of hooks that it warns of is one that is wanted here.
        warnings.filterwarnings("ignore", r"Using `torch.compile\(module\)` when there are global hooks")
        if self._step_by in ("auto", "optimizer"):
            self._watch_optimizers()
        elif self._step_by == "dataloader":
            self._watch_loaders()
        os.register_at_fork(after_in_child=shielded(self.disable))

    def disable(self) -> None:
        """Stops watching for good; remaining hooks do nothing."""
        self._enabled = False
        self._stop_searching()
        self._root_hooks.remove()

    def explain(self) -> str:
        """Explains why no step was found; empty if one was."""
        if self._steps or not self._enabled:
            return ""
        if self._evaluations:
            return (
                f"all {self._evaluations} forwards ran without gradients in evaluation mode beside an optimizer that made "
                "no step: use --step-by forward to record them"
            )
        return "no nn.Module with parameters was called" + regions.left_alone()

    @property
    def found_roots(self) -> bool:
        """Whether a model was called at all, or compiled code in which one may be."""
        return bool(self._roots) or bool(regions.left_alone())

    def _stop_searching(self) -> None:
        self._search_hooks.remove()

    # ---- roots

    def _before_any(self, module: torch.nn.Module, args: tuple) -> None:
        if not self._enabled or getattr(self._thread, "outermost", None) is not None:
            return
        self._thread.outermost = id(module)
        if self._is_new_root(module) and not self._is_of_engine(module):
            self._add_root(module)

    def _after_any(self, module: torch.nn.Module, args: tuple, result: Any) -> None:
        if getattr(self._thread, "outermost", None) == id(module):
            self._thread.outermost = None

    def _is_new_root(self, module: torch.nn.Module) -> bool:
        if any(root() is module for root in self._roots) or isinstance(module, torch.jit.ScriptModule):
            return False
        if self._owner not in (None, threading.get_ident()) or torch.utils.data.get_worker_info() is not None:
            return False
        if next(module.parameters(), None) is None:
            return False
        # Activation checkpointing runs parts of a root again, in the backward pass.
        return not any(part is module for root in self._living_roots() for part in root.modules())

    def _is_of_engine(self, module: torch.nn.Module) -> bool:
        """Whether it is an engine that calls the module, in a process that trains another one."""
        if any(known() is module for known in self._engines):
            return True
        name = engine.caller() if self._step_by != "forward" else ""
        if not name or not self._living.all():
            return False
        self._engines.append(weakref.ref(module))
        if len(self._engines) == 1:
            logger.warning(
                "the model that %s calls is not recorded with the training in this process: --step-by forward, in a run of "
                "its own, records it.",
                name,
            )
        return True

    def _add_root(self, root: torch.nn.Module) -> None:
        self._owner = threading.get_ident()
        number = len(self._roots)
        self._roots.append(weakref.ref(root))
        first = self._model() if self._model is not None else None
        if first is None or any(module is first for module in root.modules()):
            self._model = self._roots[-1]
        self._root_hooks.before(root, lambda module, *_: self._before_root(module), prepend=True)
        self._root_hooks.after(root, lambda module, *_: self._after_root(module), always=True)
        # PyTorch has taken the list of this call's hooks already.
        if number and self._state == OPEN:
            self._inside = id(root)
            self._tell(self._client.join, root, number)
        else:
            self._before_root(root)

    def _before_root(self, root: torch.nn.Module) -> None:
        if not self._enabled or threading.get_ident() != self._owner or self._inside not in (None, id(root)):
            return
        self._inside = id(root)
        if self._state == OPEN:
            if root is not self._model() or self._waits_for_optimizers():
                return
            self._end()
        elif self._is_evaluation(root):
            self._evaluations += 1
            return
        self._close()
        self._begin()

    def _after_root(self, root: torch.nn.Module) -> None:
        if self._inside == id(root):
            self._inside = None

    # ---- steps

    def _begin(self) -> None:
        self._state = OPEN
        self._steps += 1
        self._waited, self._stepped = [], []
        self._tell(self._client.begin, self._living_roots())

    def _end(self) -> None:
        if self._state == OPEN:
            self._state = OVER
            self._tell(self._client.over)

    def _close(self) -> None:
        if self._state == OVER:
            self._state = IDLE
            self._tell(self._client.close)
            if self._search_hooks and not self._client.wants_roots():
                self._stop_searching()

    def _living_roots(self) -> list:
        roots = [root() for root in self._roots]
        return [root for root in roots if root is not None]

    def _tell(self, what: Callable, *values: Any) -> None:
        if not self._enabled:
            return
        try:
            what(*values)
        except (RuntimeError, ValueError, OSError, TypeError, AttributeError, KeyError) as error:
            self.disable()
            logger.error("capture ends here, the run goes on: %s: %s", type(error).__name__, error)

    def _is_evaluation(self, root: torch.nn.Module) -> bool:
        if self._step_by == "forward" or root.training or torch.is_grad_enabled():
            return False
        return self._step_by == "optimizer" or self._waits_for_optimizers()

    def _waits_for_optimizers(self) -> bool:
        if self._step_by != "auto":
            return self._step_by != "forward"
        if not self._optimizers_known and self._searches < _SEARCHES:
            self._searches += 1
            self._optimizers_known = bool(self._optimizers())
        return self._optimizers_known

    # ---- optimizers

    def _watch_optimizers(self) -> None:
        optimizers = importlib.import_module("torch.optim.optimizer")
        if not hasattr(optimizers, "register_optimizer_step_post_hook"):
            logger.warning("this PyTorch does not tell when optimizers step: every forward is a step")
            self._step_by = "forward"
            return
        # The first one has nothing to do: who joins while the closure of a step runs is called behind it, too.
        self._optimizer_hooks.around_step(None, lambda *_: None, lambda optimizer, *_: self._has_stepped(optimizer))
        self._watch_scaler()

    def _watch_scaler(self) -> None:
        """Ends the step even if a GradScaler skips the optimizer's step because gradients overflowed."""
        scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
        original = scaler.step

        @functools.wraps(original)
        def step(this: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = len(self._stepped)
            result = original(this, optimizer, *args, **kwargs)
            if len(self._stepped) == before:
                self._has_stepped(optimizer)
            return result

        self._optimizer_hooks.instead(scaler, "step", step)

    def _has_stepped(self, optimizer: Any) -> None:
        if not self._enabled or threading.get_ident() != self._owner:
            return
        self._living.has_stepped(optimizer)
        if self._state != OPEN:
            return
        self._optimizers_known = True
        # DeepSpeed has an optimizer step one group of parameters after the other.
        now = parameter_ids(optimizer)
        again = any(known() is optimizer and not (ids and now.isdisjoint(ids)) for known, ids in self._stepped)
        if again:
            self._dropped.update(*self._waited)
            self._waited = []
        elif not self._stepped:
            self._trained = self._optimizers()
            self._waited = [ids for ids in self._trained.values() if ids.isdisjoint(self._dropped)]
        self._stepped.append((weakref.ref(optimizer), now))
        own = self._trained.get(id(optimizer)) or now
        self._waited = [ids for ids in self._waited if ids.isdisjoint(own)]
        if not self._waited:
            self._end()

    def _optimizers(self) -> dict:
        """Finds the live optimizers that train the roots, id -> ids of parameters; a wrapper around another one trains the same."""
        found: dict = {}
        for root in self._living_roots():
            found.update({id(inner): ids for _, inner, ids in self._living.of(root)})
        return found

    # ---- data loaders

    def _watch_loaders(self) -> None:
        def before_fetch() -> None:
            if self._enabled and threading.get_ident() == self._owner:
                self._end()
                self._close()

        dataloader.follow(lambda: None, before_fetch)

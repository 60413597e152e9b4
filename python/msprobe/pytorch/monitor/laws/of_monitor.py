"""The laws as a part of TrainerMon."""

from typing import Any, Optional

from ...._capture.guard import of_the_script
from ...._monitor.anomalies import AnomalyLog
from ...._monitor.laws import LawBook
from .parameter_laws import copy_of
from .watch import LawWatch


class MonitoredLaws:
    """Of a TrainerMon, which has a configuration, a board and a guard."""

    _book: Optional[LawBook] = None
    _laws: Optional[LawWatch] = None

    def watch_ema(self, model: Any, decay: Optional[float] = None) -> None:
        """Holds an averaged copy of the model against it, for the law `ema`; call it after set_monitor().

        Args:
            model: The copy: a module, or a dict of tensors by name, whose names are those of the model's parameters; or a
                list of tensors in the order of model.parameters(), all of them or those that require a gradient.
            decay: What it keeps of itself at a step, if that is known.

        Raises:
            TypeError: The copy is neither of these; nothing is watched, and the training may go on.
        """
        copy = copy_of(model)
        if self._laws is not None:
            self._guard(lambda: self._laws.watch_ema(copy, decay))

    def _open_laws(self, anomalies: Optional[AnomalyLog]) -> None:
        self._book = None
        if self.config.laws.on:
            self._book = LawBook(self.config.laws, self.tensorboard_dir, self.rank, anomalies)
            self._board.liveness.laws = self._book.lines

    def _start_laws(self) -> None:
        if self._book is None or self.config.print_struct:
            return
        self._laws = LawWatch(
            self.model,
            self._view,
            self.micro_batch_number,
            self.params_have_main_grad,
            self._book,
            self.tensorboard_dir,
            self._guard,
            (self.dp_group, self.tp_group),
        )

    def _remove_laws(self) -> None:
        if self._laws is not None:
            self._laws.remove()
            self._laws.end()
            self._laws = None
            if self._book is not None:  # the process may have ended it before
                self._book.write()

    def _laws_before_step(self) -> None:
        if self._laws is not None:
            self._guard(lambda: self._laws.before_step(self.step_count))

    def _laws_after_step(self) -> None:
        """Calls the callbacks with what broke; what they raise reaches the training."""
        events: list = []
        if self._laws is not None:
            self._guard(lambda: events.extend(self._laws.after_step()))
        for event in events:
            if self._judge is not None:
                self._judge.act(self.step_count, event)
                continue
            for callback in self._callbacks:
                of_the_script(callback, event)

    def _end_laws(self) -> None:
        if self._laws is not None:
            self._guard(self._laws.end)
        if self._book is not None:
            self._book.end()
            self._book = None

"""Changes told while a training runs, and what is done then: a callback, a command of the user, a dump of the next steps."""

import json
import os
import subprocess
from collections.abc import Callable
from typing import Optional

from .. import _core
from .._capture.guard import of_the_script
from .._capture.log import logger
from .alarm_news import AlarmNews
from .anomalies import AnomalyLog
from .config import AlertActions

_MOST_COMMANDS = 20  # of a run


class LiveJudge:
    """Judges the series of this rank after each step that was written."""

    def __init__(
        self, directory: str, rank: int, false_alarms: float, actions: AlertActions, anomalies: Optional[AnomalyLog]
    ) -> None:
        """Reads nothing before the first step.

        Args:
            directory: Of this rank.
            rank: Of this process.
            false_alarms: That a healthy run of 2,000 steps may have.
            actions: What is done at an alarm.
            anomalies: Where alarms go besides the log.
        """
        self._path = os.path.join(directory, "monitor.series")
        self._false_alarms = false_alarms
        self._judge: Optional[_core.SeriesJudge] = None
        self._actions = actions
        self._anomalies = anomalies
        self._rank = rank
        self._commands: list = []  # those that run
        self._started = 0
        self.callbacks: list = []
        self._untold: list = []  # events that the callbacks have not got
        self.dump: Optional[Callable[[int, int], None]] = None  # (step, number of steps) -> dumps them
        self.news: Optional[AlarmNews] = None  # of the other ranks

    def step(self, step: int) -> None:
        """Judges what was written, and acts.

        Args:
            step: The step that was written last.

        Raises:
            ValueError: The file of the series cannot be read.
        """
        if self._judge is None:
            self._judge = _core.SeriesJudge(self._path, self._rank, self._false_alarms)
        lines = self._judge.advance()
        for line in lines:
            event = json.loads(line)
            logger.warning("monitor: change: %s", event["text"])
            if self._anomalies is not None:
                evidence = event["evidence"][0]
                self._anomalies.add(
                    f"0:{evidence['name']}/rank{self._rank}/{evidence['table']}", event["text"], step, -1
                )
                self._anomalies.write()
            self.act(step, event)
        self._commands = [process for process in self._commands if process.poll() is None]
        if self.news is not None:
            self._hear(step, bool(lines))

    def _hear(self, step: int, alarm: bool) -> None:
        for rank, told in self.news.exchange(step, alarm):
            logger.warning("monitor: rank %d reports a change at step %d", rank, told)
            if self._actions.dump_steps and self.dump is not None:
                self.dump(step, self._actions.dump_steps)

    def tell(self) -> None:
        """Calls the callbacks with what is new. What they raise reaches the training: that is how they end it."""
        events, self._untold = self._untold, []
        for event in events:
            for callback in self.callbacks:
                of_the_script(callback, event)

    def act(self, step: int, event: dict) -> None:
        """Does what is to be done at an alarm, also at one of the laws.

        Args:
            step: Where it was reported.
            event: What tell() gives to the callbacks.
        """
        self._untold.append(event)
        if self._actions.command and self._started < _MOST_COMMANDS:
            self._run(event)
        if self._actions.dump_steps and self.dump is not None:
            self.dump(step, self._actions.dump_steps)

    def _run(self, event: dict) -> None:
        self._started += 1
        try:
            process = subprocess.Popen(self._actions.command, stdin=subprocess.PIPE, close_fds=True)
            process.stdin.write(json.dumps(event).encode())
            process.stdin.close()
        except OSError as error:
            logger.error("monitor: the command of alarms, %s, cannot run: %s", self._actions.command[0], error)
            return
        self._commands.append(process)
        if self._started == _MOST_COMMANDS:
            logger.warning("monitor: %d commands of alarms were started: there will be no more", _MOST_COMMANDS)

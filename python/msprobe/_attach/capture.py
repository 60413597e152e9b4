"""`msprobe run`: the calls of PrecisionDebugger that the script would make."""

import os
from typing import Any

from .._capture.log import logger
from .client import Client
from .directory import OwnDirectory
from .request import Request


class Capture(Client):
    """Calls PrecisionDebugger as a script would, unless the script does so itself."""

    def __init__(self, request: Request, debugger_class: Any, dump_path: str = ""):
        self._request = request
        self._dump_path = dump_path  # as the request or its configuration has it
        self._class = debugger_class  # PrecisionDebugger of the framework
        self._debugger: Any = None
        self._stands_back = False
        self._recorded = False
        self._begun = 0  # steps

    def write_below(self, stage: str) -> None:
        """Puts the dump into a directory of `dump_path`; called before the first step."""
        self._request = self._request._replace(dump_path=os.path.join(self._dump_path, stage))

    def begin(self, roots: list) -> None:
        self._begun += 1
        if self._debugger is None and not self._stands_back:
            self._construct()
        if self._stands_back:
            return
        self._class.start(model=roots[0])
        for number, root in enumerate(roots[1:], 1):
            self.join(root, number)

    def join(self, root: Any, number: int) -> None:
        if not self._stands_back and self._debugger._config.level != "L1":
            self._class._framework.add_model(root, number)

    def over(self) -> None:
        if not self._stands_back:
            self._recorded |= self._debugger._active
            self._class.stop()

    def close(self) -> None:
        if not self._stands_back:
            self._class.step()

    def wants_roots(self) -> bool:
        return not (self._recorded or self._stands_back)

    def exit(self) -> None:
        if self._debugger is None or self._stands_back:
            return
        missed = sorted(step for step in self._debugger._config.step if step >= self._begun)
        if missed:
            logger.warning(
                "%s not reached: the run had %d step%s, counted from 0.",
                f"step {missed[0]} was" if len(missed) == 1 else f"{len(missed)} steps, from {missed[0]} on, were",
                self._begun,
                "" if self._begun == 1 else "s",
            )

    def _construct(self) -> None:
        if self._class._instance is not None:
            self._stand_back()
            return
        self._debugger = self._class(self._request.config, **self._request.overrides())
        self._class._on_second = self._stand_back
        self._class._name_unranked = OwnDirectory(self._request.began)
        if self._debugger._forget_dataloader is not None:  # the steps are ours to begin and end
            self._debugger._forget_dataloader()
            self._debugger._forget_dataloader = None

    def _stand_back(self, *args: Any) -> None:
        self._stands_back = True
        logger.warning(
            "the script uses PrecisionDebugger itself: its calls decide what is recorded, msprobe run does nothing."
        )

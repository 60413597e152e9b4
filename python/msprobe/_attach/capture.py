"""`msprobe run`: the calls of PrecisionDebugger that the script would make."""

from typing import Any, Optional

import torch

from .._capture.log import logger
from ..pytorch import hooks
from ..pytorch.debugger import PrecisionDebugger
from .directory import OwnDirectory
from .request import Request
from .step_detector import Client


class Capture(Client):
    """Calls PrecisionDebugger as a script would, unless the script does so itself."""

    def __init__(self, request: Request):
        self._request = request
        self._debugger: Optional[PrecisionDebugger] = None
        self._stands_back = False
        self._recorded = False

    def begin(self, roots: list) -> None:
        if self._debugger is None and not self._stands_back:
            self._construct()
        if self._stands_back:
            return
        PrecisionDebugger.start(model=roots[0])
        for number, root in enumerate(roots[1:], 1):
            self.join(root, number)

    def join(self, root: torch.nn.Module, number: int) -> None:
        if not self._stands_back and self._debugger.config.level != "L1":
            hooks.add_model(root, number)

    def over(self) -> None:
        if not self._stands_back:
            self._recorded |= self._debugger._active
            PrecisionDebugger.stop()

    def close(self) -> None:
        if not self._stands_back:
            PrecisionDebugger.step()

    def wants_roots(self) -> bool:
        return not (self._recorded or self._stands_back)

    def _construct(self) -> None:
        if PrecisionDebugger._instance is not None:
            self._stand_back()
            return
        self._debugger = PrecisionDebugger(self._request.config, **self._request.overrides())
        PrecisionDebugger._on_second = self._stand_back
        PrecisionDebugger._name_unranked = OwnDirectory(self._request.began)
        if self._debugger._forget_dataloader is not None:  # the steps are ours to begin and end
            self._debugger._forget_dataloader()
            self._debugger._forget_dataloader = None

    def _stand_back(self, *args: Any) -> None:
        self._stands_back = True
        logger.warning(
            "the script uses PrecisionDebugger itself: its calls decide what is recorded, msprobe run does nothing."
        )

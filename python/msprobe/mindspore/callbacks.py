"""Callbacks of mindspore.train.Model that make the calls of PrecisionDebugger."""

from typing import Any

from mindspore.train import Callback

from .._capture.log import logger
from .debugger import PrecisionDebugger


class MsprobeStep(Callback):
    """Records each step of Model.train()."""

    def __init__(self, debugger: PrecisionDebugger) -> None:
        """Takes the debugger that records.

        Args:
            debugger: The PrecisionDebugger. Where its level needs the network, that of the Model is used.
        """
        super().__init__()
        self._debugger = debugger

    def on_train_step_begin(self, run_context: Any) -> None:
        """Begins the recording of a step.

        Args:
            run_context: Of Model.train().
        """
        self._debugger.start(run_context.original_args().network)

    def on_train_step_end(self, run_context: Any) -> None:
        """Ends it.

        Args:
            run_context: Of Model.train().
        """
        self._debugger.stop()
        self._debugger.step()


class MsprobeInitStep(Callback):
    """Numbers the recorded steps on from where a training is resumed."""

    def on_train_begin(self, run_context: Any) -> None:
        """Takes the number of the step that Model.train() begins with.

        Args:
            run_context: Of Model.train().
        """
        step = run_context.original_args().cur_step_num
        if PrecisionDebugger._instance is None:
            logger.warning("MsprobeInitStep has no effect: construct PrecisionDebugger before Model.train().")
            return
        PrecisionDebugger.set_init_step(step)

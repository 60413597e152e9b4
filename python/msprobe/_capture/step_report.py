"""What is said at the end of a step: how many ops were captured, what was not and why, how much was written, and where."""

from collections.abc import Mapping
from typing import Any

from . import error_log
from .log import logger

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


class StepReporter:
    """Warns once per run about each kind of problem; repetitions are ordinary log lines."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def warn_once(self, kind: str, text: str, *args: Any) -> None:
        """Logs a warning the first time in a run, an ordinary line afterwards."""
        if kind in self._told:
            logger.info(text, *args)
            return
        self._told.add(kind)
        logger.warning(text, *args)

    def fail_once(self, kind: str, text: str, *args: Any) -> None:
        """Logs an error the first time in a run, and nothing afterwards."""
        if kind not in self._told:
            self._told.add(kind)
            logger.error(text, *args)

    def at_end_of_step(self, step: int, directory: str, summary: Mapping[str, Any], what: str, ranks: int) -> None:
        """Logs the summary. `what` is ops or values; `ranks`: how many this line is for, 0 where another rank logs it."""
        skipped, lost = summary["skipped"], summary["not_written"]
        error_log.write(directory, skipped, summary["examples"])
        of_all = f" of {summary['written'] + lost}" if lost else ""
        text = f"step {step}: captured {summary['written']}{of_all} {what}"
        tensors = summary["tensors"]
        if tensors["saved"]:
            text += f" and {tensors['saved']} tensor files ({tensors['linked']} hard links)"
        text += f", {_size(summary['bytes'])} in {directory}"
        if ranks > 1:
            text += f"; each of the {ranks} ranks writes a directory of its own"
        for part in ("ops", "tensors"):
            reason = summary[part + "_stopped"]
            if reason:
                count = lost if part == "ops" else summary["tensors_not_written"]
                self.warn_once(reason, "step %d: %d %s were not written because %s.", step, count, part, reason)
        if skipped:
            reasons = "; ".join(f"{kind} ({count})" for kind, count in skipped.items())
            text += f"; skipped {sum(skipped.values())} because {reasons}. Details: {error_log.NAME} beside dump.json"
            self.warn_once(" ".join(sorted(skipped)), "%s.", text)
        elif ranks:
            logger.info("%s.", text)


def _size(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"

"""Messages of the tool: to stderr, marked, once per job for what every rank would say."""

import logging
import os
import sys

logger = logging.getLogger("msprobe")


class _Handler(logging.StreamHandler):
    """Leaves nothing of ours in the buffer of stderr.

    What a full disk refuses would be refused again when the interpreter ends, and turn the exit code of the training into
    120.
    """

    def emit(self, record: logging.LogRecord) -> None:
        try:
            descriptor = self.stream.fileno()
        except (AttributeError, OSError, ValueError):  # not a file: a notebook, a test
            super().emit(record)
            return
        try:
            self.flush()
            text = memoryview((self.format(record) + self.terminator).encode("utf-8", "backslashreplace"))
            while text:
                text = text[os.write(descriptor, text) :]
        except OSError:
            return


def _set_up() -> None:
    if logger.handlers:
        return
    handler = _Handler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s (%(process)d) [%(levelname)s] [msprobe] %(message)s", "%Y-%m-%d %H:%M:%S")
    )
    logger.addHandler(handler)
    logger.setLevel(os.environ.get("MSPROBE_LOG_LEVEL", "INFO").upper())
    logger.propagate = False


_set_up()

"""What is done at the moments that a step detector finds."""

from typing import Any

IDLE, OPEN, OVER = "idle", "open", "over"  # states of a step


class Client:
    """What to do at the moments found. Called on the thread that runs the model."""

    def begin(self, roots: list) -> None:
        """Called right before the first forward of a step."""

    def join(self, root: Any, number: int) -> None:
        """Called when another root is about to run in the open step."""

    def over(self) -> None:
        """Called when the last optimizer of the step has stepped or, without optimizers, when the next forward begins."""

    def close(self) -> None:
        """Called right before the first forward of the next step, or where the script fetches its data."""

    def wants_roots(self) -> bool:
        """Tells whether further roots may join."""
        return True

    def exit(self) -> None:
        """Called when the interpreter ends."""

"""Which step it is, and whether the configuration wants it."""

from .config import Config


class Schedule:
    """Counts steps, from 0 or from the number given to set_init_step()."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._first = 0
        self._ended = 0  # steps so far
        self.begun = 0  # the step of the last start()

    @property
    def step(self) -> int:
        """The number of the current or next step."""
        return self._first + self._ended

    def begin_at(self, step: int) -> None:
        """Sets the number of the next step."""
        self._first, self._ended = step, 0

    def next(self) -> None:
        """Ends the step."""
        self._ended += 1

    def wants_step(self) -> bool:
        """Tells whether the configuration includes this step."""
        return not self.config.step or self.step in self.config.step

    def is_past_last(self) -> bool:
        """Tells whether all configured steps are over."""
        return bool(self.config.step) and self.step > max(self.config.step)

    def wants_rank(self, rank: object) -> bool:
        """Tells whether the configuration includes this rank."""
        return not self.config.rank or rank in self.config.rank

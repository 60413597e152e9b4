"""What a story is: a pair of runs of which one has a known fault, and what every surface has to say of it."""

from typing import NamedTuple, Optional


class Truth(NamedTuple):
    """Where the fault was put, written down with it; the words of docs/en/compare/verdict.md."""

    cause: str
    op: str
    item: str
    module: str
    ranks: tuple = (0,)  # those that have the fault
    parameter: str = ""
    step: int = 0
    reached: tuple = ()  # (rank, call through which it gets there)


class Story(NamedTuple):
    name: str
    kind: str  # "single", "nan" or "precision": one rank, or what several ranks have
    about: str
    truth: Truth
    # Where NaN and infinities begin in the target by itself; None: it has none.
    overflow: Optional[Truth] = None

"""Laws of a training step: what has to hold without any run to compare with, and the book of what held and what did not.

A law that cannot be looked at says why; it never counts as held.
"""

import json
import os
from dataclasses import dataclass, field
from typing import Any, Optional

from .._capture.files import write_file
from .._capture.log import logger
from .anomalies import AnomalyLog

# Name -> what has to hold. docs/en/monitor/laws.md explains each.
LAWS = {
    "replicas": "replicated parameters are equal on all ranks",
    "tied": "tied weights are one tensor, or equal",
    "gradients_present": "each parameter that the optimizer trains gets a gradient",
    "stale_gradient": "a gradient is that of this step",
    "in_optimizer": "each parameter that requires a gradient is in an optimizer",
    "accumulation": "the accumulated gradient is the sum over micro steps, scaled by their number",
    "zero_grad": "gradients begin at zero after each step",
    "finite_step": "the optimizer gets no NaN and no infinity",
    "collectives": "the reduced gradient is the mean of those of the ranks",
    "clip": "gradients have at most the norm to which they are clipped",
    "loss_scale": "the loss scale is taken off before clipping and step, and falls after an overflow",
    "update": "the optimizer's update is that of its hyperparameters, in float64",
    "unchanged": "a parameter with a gradient changes",
    "frozen": "a frozen parameter does not change",
    "lr_schedule": "the learning rate follows its schedule, without jumps",
    "dtype": "no parameter, moment or loss falls to a narrower type",
    "train_mode": "the model trains in training mode",
    "batch_norm": "running statistics move in training mode",
    "batch_repeats": "each step, micro step and rank has a batch of its own",
    "padding": "rows of padding get no gradient",
    "experts": "experts get tokens and differ",
    "recompute": "a recomputed forward is the forward",
    "ema": "the averaged copy is an average of the parameters",
}
# Of these a healthy training breaks none, whatever it trains and however: `msprobe monitor` looks at them unasked.
LAWS_BY_DEFAULT = frozenset(
    "replicas collectives stale_gradient zero_grad finite_step clip loss_scale update lr_schedule dtype recompute".split()
)
# What comes from calls of modules and functions.
_OF_CODE = frozenset(
    "gradients_present accumulation clip train_mode batch_norm batch_repeats padding experts recompute".split()
)
_MOST_BROKEN = 200  # entries of a law that are kept; more are counted
_SHOWN = 3
_MOST_EVERY = 1_000_000


@dataclass
class LawConfig:
    """The key `laws` of the configuration."""

    on: dict = field(default_factory=dict)  # law -> whether it is looked at; empty: no laws
    every: int = 50  # two steps in so many are looked at
    first: int = 20  # and all of the first ones
    elements: int = 64  # of a tensor that are looked at, where not all are
    clip_norm: Optional[float] = None
    without: list = field(default_factory=list)  # parts of names that are left out

    def is_checked(self, count: int) -> bool:
        """Tells whether a step is looked at; two in a row, because some laws say what lies between steps."""
        return count < self.first or count % self.every < 2


def read_laws(given: Any, place: str) -> LawConfig:
    """Reads the key `laws`.

    Args:
        given: true, false, or an object.
        place: What messages call the file.

    Returns:
        The laws.

    Raises:
        TypeError: A value has the wrong type, or a name is none.
        ValueError: A value is out of range.
    """
    config = LawConfig()
    if isinstance(given, bool):
        config.on = dict.fromkeys(LAWS, True) if given else {}
        return config
    if not isinstance(given, dict):
        raise TypeError(f"laws is {given!r}; allowed: true, false or an object ({place})")
    config.on = dict.fromkeys(LAWS, True)
    for key, value in given.items():
        if key in LAWS:
            if not isinstance(value, bool):
                raise TypeError(f"laws: {key} is {value!r}; allowed: true or false ({place})")
            config.on[key] = value
        elif key in ("every", "first", "elements"):
            least = 0 if key == "first" else 2
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_EVERY:
                raise ValueError(
                    f"laws: {key} is {value!r}; allowed: an integer from {least} to {_MOST_EVERY} ({place})"
                )
            setattr(config, key, value)
        elif key == "clip_norm":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise ValueError(f"laws: clip_norm is {value!r}; allowed: a number above 0 ({place})")
            config.clip_norm = float(value)
        elif key == "except":
            if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
                raise TypeError(f"laws: except is {value!r}; allowed: a list of parts of names ({place})")
            config.without = value
        else:
            allowed = ", ".join([*LAWS, "every", "first", "elements", "clip_norm", "except"])
            raise TypeError(f"laws has {key}; allowed: {allowed} ({place})")
    return config


@dataclass
class _Law:
    looks: int = 0
    broken: dict = field(default_factory=dict)  # subject -> entry
    more: int = 0
    why: str = ""  # it was not looked at
    notes: dict = field(default_factory=dict)


class LawBook:
    """What held and what did not, of one rank. Each subject is reported when its law first breaks, and counted afterwards."""

    def __init__(self, config: LawConfig, directory: str, rank: int, anomalies: Optional[AnomalyLog]) -> None:
        """Begins empty.

        Args:
            config: Which laws.
            directory: Of this rank's files.
            rank: Of this process.
            anomalies: Where what breaks goes besides the log.
        """
        self.config = config
        self.rank = rank
        self.step = 0
        self._path = os.path.join(directory, "laws.json")
        self._anomalies = anomalies
        self._laws = {name: _Law() for name, on in config.on.items() if on}
        self._compiled = ""  # names of code that is left alone
        self._new: list = []  # events that nobody has got
        self._fresh = True
        self._broken_file = False

    def on(self, *laws: str) -> bool:
        """Tells whether one of these is looked at."""
        return any(law in self._laws for law in laws)

    def wants(self, name: str) -> bool:
        """Tells whether a parameter or module is not left out."""
        return not any(part in name for part in self.config.without)

    def looked(self, law: str, count: int = 1) -> None:
        """Counts looks at a law."""
        if law in self._laws:
            self._laws[law].looks += count

    def not_checked(self, law: str, why: str) -> None:
        """Says why a law is not looked at."""
        if law in self._laws and self._laws[law].why != why:
            self._laws[law].why = why
            self._fresh = True

    def note(self, law: str, subject: str, text: str) -> None:
        """What is odd and no fault by itself."""
        if law in self._laws and subject not in self._laws[law].notes and len(self._laws[law].notes) < _MOST_BROKEN:
            self._laws[law].notes[subject] = text
            self._fresh = True

    def broken(self, law: str, subjects: Any, text: str, rank: Optional[int] = None) -> None:
        """A law does not hold.

        Args:
            law: Its name.
            subjects: Names of parameters or modules, or one name.
            text: A sentence that says what is wrong and what to look at.
            rank: The guilty one; None for this process.
        """
        state = self._laws.get(law)
        if state is None:
            return
        names = [subjects] if isinstance(subjects, str) else list(subjects)
        names = [name for name in names if not name or self.wants(name)]
        if not names:
            return
        fresh = [name for name in names if name not in state.broken]
        for name in names:
            entry = state.broken.get(name)
            if entry is not None:
                entry["times"] += 1
                entry["last_step"] = self.step
        if not fresh:
            return
        more = f" and {len(fresh) - _SHOWN} more" if len(fresh) > _SHOWN else ""
        where = ", ".join(name for name in fresh[:_SHOWN] if name) + more
        full = f"law {law}, step {self.step}: {where + ': ' if where else ''}{text}"
        for name in fresh:
            if len(state.broken) >= _MOST_BROKEN:
                state.more += 1
                continue
            state.broken[name] = {"step": self.step, "last_step": self.step, "times": 1, "text": text, "rank": rank}
        logger.warning("monitor: %s", full)
        if self._anomalies is not None:
            self._anomalies.add(f"0:{fresh[0] or law}/rank{self.rank}/law_{law}", full, self.step, -1)
        self._new.append(
            {
                "text": full,
                "onset": self.step,
                "told": self.step,
                "detector": f"law_{law}",
                "table": "law",
                "column": law,
                "layers": fresh[:_MOST_BROKEN],
                "rank": self.rank if rank is None else rank,
                "evidence": [{"name": fresh[0] or law, "table": f"law_{law}", "strength": 99}],
            }
        )
        self._fresh = True

    # ---- what others read

    def events(self) -> list:
        """What broke since the last call."""
        found, self._new = self._new, []
        return found

    def lines(self) -> list:
        """A line for each law that broke."""
        out = []
        for name, state in self._laws.items():
            if state.broken:
                subjects = [subject for subject in state.broken if subject]
                first = next(iter(state.broken.values()))
                more = f" and {len(subjects) - _SHOWN} more" if len(subjects) > _SHOWN else ""
                where = f"{', '.join(subjects[:_SHOWN])}{more}: " if subjects else ""
                out.append(f"law {name} broken from step {first['step']} on: {where}{first['text']}")
        return out

    def compiled(self, names: list) -> None:
        """Such code is left alone: laws do not see what runs there."""
        self._compiled = ", ".join(names)
        self._fresh = True

    def _why_not(self, name: str, partly: bool = False) -> str:
        why = self._laws[name].why or ("" if partly else "nothing to look at in this training")
        if not self._compiled or (partly and name not in _OF_CODE):
            return why
        return f"{why}; " * bool(why) + f"compiled code is left alone: {self._compiled}"

    def unchecked(self) -> list:
        """A line for each law that was never looked at."""
        return [
            f"law {name} not checked: {self._why_not(name)}"
            for name, state in self._laws.items()
            if not state.looks and not state.broken
        ]

    def in_part(self) -> list:
        """A line for each law that was looked at in part and did not break: it does not count as held."""
        return [
            f"law {name} looked at in part: {why}"
            for name, state in self._laws.items()
            if state.looks and not state.broken and (why := self._why_not(name, True))
        ]

    def write(self) -> None:
        """Writes laws.json, if there is something new."""
        if self._anomalies is not None:
            self._anomalies.write()
        if not self._fresh:
            return
        self._fresh = False
        laws = {
            name: {
                "law": LAWS[name],
                "looks": state.looks,
                "not_checked": "" if state.looks or state.broken else self._why_not(name),
                "partly_not_checked": self._why_not(name, True) if state.looks or state.broken else "",
                "broken": [{"name": subject, **entry} for subject, entry in state.broken.items()],
                "more_broken": state.more,
                "notes": [{"name": subject, "text": text} for subject, text in state.notes.items()],
            }
            for name, state in self._laws.items()
        }
        try:
            write_file(self._path, json.dumps({"rank": self.rank, "step": self.step, "laws": laws}, indent=1).encode())
        except OSError as error:
            if not self._broken_file:
                logger.warning("monitor: laws.json cannot be written: %s", error)
            self._broken_file = True

    def end(self) -> None:
        """Says what the whole run had, and writes it."""
        looked = [name for name, state in self._laws.items() if state.looks and not state.broken]
        broken, part, unchecked = self.lines(), self.in_part(), self.unchecked()
        logger.info(
            "monitor: laws: %d held, %d broken, %d looked at in part, %d not checked",
            len(looked) - len(part),
            len(broken),
            len(part),
            len(unchecked),
        )
        for line in broken:
            logger.warning("monitor: %s", line)
        for line in part + unchecked:
            logger.info("monitor: %s", line)
        self._fresh = True
        self.write()

"""What the command asks of the processes it starts: one JSON object in the environment."""

import json
import os
from typing import NamedTuple, Optional

VARIABLE = "MSPROBE_ATTACH"


class Request(NamedTuple):
    """The options of the command that its processes need."""

    mode: str = "run"  # run, estimate, certify, resume, parity
    config: Optional[str] = None
    task: Optional[str] = None
    level: Optional[str] = None
    dump_path: Optional[str] = None
    step: Optional[list] = None
    step_by: str = "auto"
    steps: int = 0  # estimate, certify: steps until the script is stopped; 0: never
    role: str = (
        ""  # certify: bare, captured; resume: scout, straight, killed, resumed; parity: ranks, reference, rounded
    )
    began: float = 0.0  # when the command was given, in seconds since 1970
    save_at: int = 0  # certify --resume: steps that are done when the script saves
    save_batches: str = ""  # run: directories of what steps get
    save_grads: str = ""
    save_optimizer: str = ""
    replay_batches: str = ""
    replay_grads: str = ""
    batches_from: str = "auto"  # or model
    names: str = ""  # file: which saved name is which here
    loss_scale: float = 1.0  # run: by which the script multiplies its loss, where no GradScaler does
    layouts: str = ""  # parity: sizes of the axes, the one that varies fastest first: "tp=2,dp=2"
    weights_from: str = ""  # parity: records of the ranks whose weights a reference takes
    join_ranks: Optional[list] = None  # parity: ranks whose batches a reference takes as one
    csv: bool = False  # monitor: csv files besides the series
    command: str = ""  # monitor: what is run, as it is typed
    out: str = ""  # estimate, certify, parity: directory of what each process found

    @property
    def captures(self) -> bool:
        """Whether anything is recorded: a run may only save or replay batches and gradients."""
        return bool(self.config or self.dump_path)

    def numbers(self, default: tuple) -> frozenset:
        """Returns the steps of --step, ranges written out; `default` without any."""
        found: set = set()
        for item in self.step or default:
            begin, _, end = str(item).partition("-")
            found.update(range(int(begin), int(end or begin) + 1))
        return frozenset(found)

    def overrides(self) -> dict:
        """Returns the arguments of PrecisionDebugger; "all", which only estimate knows, is left out."""
        given = {"task": self.task, "dump_path": self.dump_path, "level": self.level, "step": self.step}
        return {key: value for key, value in given.items() if value != "all"}


def read() -> Request:
    """Reads the request of this process."""
    given = json.loads(os.environ[VARIABLE])
    return Request(**{key: value for key, value in given.items() if key in Request._fields})

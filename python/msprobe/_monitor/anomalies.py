"""Anomalies of series: the file of each rank, and which of all ranks' came first."""

import heapq
import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from .._capture.files import write_file

FILE = "anomaly.json"
ANALYSIS = "anomaly_analyse.json"
_MOST_BYTES = 1 << 30
_MOST_ANOMALIES = 10_000  # of a rank: what comes first is what matters
# When a tag's value exists: forward, backward, optimizer; others before all.
_PHASES = {
    "actv": 0,
    "actv_grad": 1,
    "pre_grad": 1,
    "post_grad": 1,
    "acc_grad": 1,
    "exp_avg": 2,
    "exp_avg_sq": 2,
}


@dataclass
class Anomaly:
    """One value that a rule found: an entry of anomaly.json."""

    rank: int = 0
    step: int = 0
    micro_step: int = 0
    pp_stage: int = 0
    vpp_stage: int = 0
    call_id: int = 0
    tag_name: str = ""
    message: str = ""
    group_mates: list = field(default_factory=list)

    def key(self) -> str:
        """Its name in the file."""
        return f"{self.tag_name}_step_{self.step}_call_{self.call_id}"

    def place(self) -> tuple:
        """Sorts by what happened first: in the forward the earlier stages of the pipeline, afterwards the later ones."""
        phase = _PHASES.get(self.tag_name.rsplit("/", 1)[-1], -1)
        sign = 1 if phase == 0 else -1
        return (self.step, self.micro_step, phase, sign * self.vpp_stage, sign * self.pp_stage, self.call_id)


class AnomalyLog:
    """anomaly_detected/rank{r}/anomaly.json, which the first anomaly of a run begins anew."""

    def __init__(self, base: str, rank: int, pp_stage: int, group_mates: list, at_once: bool = True) -> None:
        """Writes an empty file.

        Args:
            base: The output directory of all ranks.
            rank: Of this process.
            pp_stage: Its stage of the pipeline.
            group_mates: The ranks of its process group.
            at_once: Without it the first anomaly makes the file.

        Raises:
            OSError: It cannot be written.
        """
        self._path = os.path.join(base, "anomaly_detected", f"rank{rank}", FILE)
        self._rank, self._pp_stage, self._mates = rank, pp_stage, group_mates
        self._all: dict = {}
        self._fresh = False
        if at_once:
            self._write()

    def add(self, tag: str, message: str, step: int, call: int) -> None:
        """Adds one; write() brings it into the file."""
        if len(self._all) >= _MOST_ANOMALIES:
            return
        stage = tag.partition(":")[0]
        anomaly = Anomaly(
            rank=self._rank,
            step=step,
            pp_stage=self._pp_stage,
            vpp_stage=int(stage) if stage.isdigit() else 0,
            call_id=call,
            tag_name=tag,
            message=message,
            group_mates=list(self._mates),
        )
        self._all[anomaly.key()] = asdict(anomaly)
        self._fresh = True

    def write(self) -> None:
        """Writes the file, if there is something new."""
        if self._fresh:
            self._fresh = False
            self._write()

    def _write(self) -> None:
        write_file(self._path, json.dumps(self._all, indent=1).encode())


def load_anomalies(directory: str) -> list:
    """Reads the files of all ranks.

    Args:
        directory: With rank0, rank1, ...

    Returns:
        The anomalies.

    Raises:
        ValueError: A file is not what AnomalyLog writes.
        OSError: It cannot be read.
    """
    found = []
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name, FILE)
        if not os.path.isfile(path):
            continue
        if os.path.getsize(path) > _MOST_BYTES:
            raise ValueError(f"{path} is larger than {_MOST_BYTES >> 20} MB")
        with open(path, encoding="utf-8") as file:
            try:
                entries = json.load(file)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path} is not JSON: {error}") from None
        if not isinstance(entries, dict):
            raise ValueError(f"{path} holds no anomalies: it is one JSON object")
        found += [_anomaly(key, value, path) for key, value in entries.items()]
    return found


def _anomaly(key: str, value: Any, path: str) -> Anomaly:
    try:
        anomaly = Anomaly(**value)
        anomaly.place()
    except (TypeError, AttributeError):
        raise ValueError(f"{path}: {key} is no anomaly: it needs the members that a monitor writes") from None
    return anomaly


def first_anomalies(anomalies: list, count: int, steps: list) -> list:
    """Returns the earliest ones.

    Args:
        anomalies: Of all ranks.
        count: At most so many.
        steps: Only of these; empty: of all.

    Returns:
        The anomalies, the first one first.
    """
    wanted = [a for a in anomalies if not steps or a.step in steps]
    return heapq.nsmallest(count, wanted, key=Anomaly.place)


def write_analysis(anomalies: list, directory: str) -> str:
    """Writes anomaly_analyse.json. Returns its path."""
    path = os.path.join(directory, ANALYSIS)
    write_file(path, json.dumps({a.key(): asdict(a) for a in anomalies}, indent=1).encode())
    return path

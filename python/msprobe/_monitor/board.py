"""The tables of a monitor: which series there are, what arrived, what is written."""

from collections.abc import Callable, Iterable
from typing import Any, Optional

from .. import _core
from .._capture.log import logger
from .anomalies import AnomalyLog
from .config import MonitorConfig
from .liveness import Liveness

# In the order in which a step writes them: table -> whether its rows have a micro step, whether they are in the order
# of declaration.
TABLES = {
    "model_input": (True, False),
    "input_checksum": (True, False),
    "learning_rate": (False, False),
    "loss_factor": (True, False),
    "loss": (True, False),
    "actv": (True, False),
    "actv_grad": (True, False),
    "attention_hook": (True, False),
    "linear_hook": (False, False),
    "moe_router_weight_hook": (False, False),
    "moe_router_logit_hook": (True, False),
    "health_weight": (False, False),
    "health_activation": (False, False),
    "health_logits": (False, False),
    "health_router": (False, False),
    "health_attention": (False, False),
    "grad_unreduced": (False, False),
    "grad_reduced": (False, True),
    "exp_avg": (False, True),
    "exp_avg_sq": (False, True),
    "param_origin": (False, True),
    "param_updated": (False, True),
    "param_update": (False, True),
    "other": (False, False),
}
_COLUMNS = {
    "model_input": ["norm", "min", "max", "mean", "shape", "dtype"],
    "input_checksum": ["checksum"],
    "learning_rate": ["value"],
    "loss_factor": ["value"],
    "loss": ["loss"],
    "attention_hook": ["entropy", "softmax_max"],
    "linear_hook": ["sr", "kernel_norm"],
    "moe_router_weight_hook": ["router_weight_similarity"],
    "moe_router_logit_hook": ["per_token_expert_entropy"],
    "health_weight": ["stable_rank", "sigma_max", "frobenius"],
    "health_activation": ["max", "median", "max_over_median"],
    "health_logits": ["max", "z_loss", "entropy"],
    "health_router": ["token_entropy", "load_max", "load_min", "similarity", "similarity_max"],
    "health_attention": ["entropy", "entropy_min_head", "softmax_max", "logit_max"],
}


class Board:
    """All series of one process. Values are taken while a step runs and written by write()."""

    def __init__(self, directory: str, config: MonitorConfig, rank: int, anomalies: Optional[AnomalyLog]) -> None:
        """Opens the files.

        Args:
            directory: Of this rank.
            config: What is wanted.
            rank: Of this process.
            anomalies: Where alarms go besides the log.

        Raises:
            ValueError: The directory cannot be written.
        """
        self._config = config
        self.eps = config.eps
        self._rank = rank
        self._anomalies = anomalies
        self._journal = _core.MonitorJournal(
            directory,
            config.eps,
            config.ndigits,
            config.step_count_per_record,
            config.format == "csv",
            config.format == "tensorboard",
            config.rules,
        )
        self._tables = {}
        for name, (micro, declared) in TABLES.items():
            micro = config.monitor_mbs_grad if name == "grad_unreduced" else micro
            self._tables[name] = self._journal.add_table(name, self.columns(name), micro, declared)
        self._series: dict = {}
        self._tags: dict = {}  # number -> tag
        self._expected: dict = {}  # (table, name) -> numbers of its series
        self._changes = 0  # of what was asked for
        self._why: dict = {}  # (table, name) -> reason
        self._compiled = ""  # names of code that is left alone
        self._excused: set = set()  # tables that cannot have values in this step
        self.calls: dict = {}  # tag -> position among the calls of the step
        self.liveness = Liveness(directory, rank, config.step_interval)
        self.step = -1
        self._failed = ""
        self._asked: tuple = ()
        self._answer: list = []
        self._open_steps = 0
        self.written = 0  # bytes of the last step

    @property
    def journal(self) -> Any:
        """What the values go into."""
        return self._journal

    def columns(self, table: str) -> list:
        """Names of the values of a row."""
        columns = list(_COLUMNS.get(table, self._config.ops))
        return [*columns, "ratio"] if table == "param_update" else columns

    # ---- series

    def expect(self, table: str, name: str) -> None:
        """A series that was asked for; if it stays silent that is reported."""
        self._expected.setdefault((table, name), [])
        self._changes += 1

    def forget_expectations(self) -> None:
        """Begins anew, for another configuration."""
        self._expected.clear()
        self._why.clear()
        self._changes += 1

    def why(self, table: str, name: str, reason: str) -> None:
        """Explains a series without values."""
        if self._why.get((table, name)) != reason:
            self._why[table, name] = reason
            self._changes += 1

    def compiled(self, names: list) -> None:
        """Such code is left alone: what only runs there has no values."""
        self._compiled = ", ".join(names)
        self._changes += 1

    def _reason(self, table: str, name: str) -> str:
        if self._compiled and self.step < 0:
            return f"no step of the optimizer was seen to be monitored; compiled code is left alone: {self._compiled}"
        reason = self._why.get((table, name), _REASONS.get(table, "nothing arrived"))
        if self._compiled and table in _OF_CODE:
            return f"{reason}, or only in compiled code, which is left alone: {self._compiled}"
        return reason

    def series(self, table: str, name: str, tag: str, micro: int = -1, group: int = 0, of: Optional[str] = None) -> int:
        """Returns the number of a series, which is made at the first call.

        Args:
            table: A key of TABLES.
            name: Such as "0:fc.weight", the part before the first colon being the pipeline stage.
            tag: The last part of its tag, such as "post_grad".
            micro: Its micro step, if its rows have one.
            group: Rows of one group are written together.
            of: The name by which it is expected, if another.

        Returns:
            The number.
        """
        key = (table, name, micro)
        number = self._series.get(key)
        if number is None:
            stage, _, rest = name.partition(":")
            if not rest or not stage.isdigit():
                stage, rest = "0", name
            part = f":{micro}" if micro >= 0 else ""
            full = f"{name}{part}/rank{self._rank}/{tag}"
            number = self._journal.add_series(self._tables[table], int(stage), rest, micro, group, full)
            self._series[key] = number
            self._tags[number] = full
            self._expected.setdefault((table, of or name), []).append(number)
            self._changes += 1
        if self._anomalies is not None:
            self.calls[self._tags[number]] = len(self.calls)
        return number

    def unexpect(self, table: str, name: str) -> None:
        """A series that this rank cannot have."""
        if self._expected.pop((table, name), None) is not None:
            self._changes += 1

    def leave_out(self, tables: Iterable) -> None:
        """Series of these tables are asked for no more."""
        tables = set(tables)
        self._expected = {key: numbers for key, numbers in self._expected.items() if key[0] not in tables}
        self._changes += 1

    def excuse(self, table: str) -> None:
        """A table that cannot have values in this step is not called silent."""
        self._excused.add(table)

    # ---- hooks that take gradients

    def arm(self, armed: bool) -> None:
        """Whether the hooks of gradients take what they see."""
        self._journal.armed = armed

    def next_step(self) -> None:
        """The hooks of gradients count passes from 0 again."""
        self._open_steps += 1
        self._journal.step = self._open_steps

    def gradient_hook(self, number: int, passes: int, otherwise: Callable, threads: int) -> Optional[Any]:
        """A hook of a parameter that takes its gradient in every so many passes, without any Python.

        Args:
            number: The series.
            passes: Of a step.
            otherwise: Called with a gradient that the hook cannot read.
            threads: At most, that read.

        Returns:
            The hook; None where Python has to know the order of calls.
        """
        if self._anomalies is not None:
            return None
        return _core.gradient_hook(self._journal, number, passes, otherwise, threads)

    # ---- values

    def take(self, numbers: list, tensors: list, threads: int, often: bool = False) -> list:
        """Takes the statistics of tensors. Returns the positions of those that could not be read here.

        Args:
            numbers: Their series.
            tensors: One for each.
            threads: At most, that read.
            often: Whether a tensor comes several times in a step, as those of modules do.

        Returns:
            The positions.
        """
        return self._journal.take(numbers, tensors, threads, often)

    def put(self, number: int, values: Iterable) -> None:
        """Takes values of the columns; None for one without."""
        self._journal.put(number, list(values))

    def put_summary(self, number: int, numbers: list, shape: list, dtype: str) -> None:
        """Takes statistics that a device has computed."""
        self._journal.put_summary(number, numbers, shape, dtype)

    def set_shape(self, number: int, shape: str) -> None:
        """Writes this shape instead of the one that was seen."""
        self._journal.set_shape(number, shape)

    def drop(self) -> None:
        """Forgets what arrived in this step."""
        self._journal.drop()
        self.calls.clear()

    def rows(self, table: str) -> dict:
        """Returns what a table has of the step: tag -> {statistic: value}."""
        columns = [c for c in self.columns(table) if c not in ("shape", "dtype")]
        rows = self._journal.rows(self._tables[table])  # may name series that are new
        by_key = {
            (number_key[1], number_key[2]): number
            for number_key, number in self._series.items()
            if number_key[0] == table
        }
        found = {}
        for stage, name, micro, values in rows:
            number = by_key.get((f"{stage}:{name}", micro), by_key.get((name, micro)))
            if number is not None:
                found[self._tags[number]] = dict(zip(columns, values))
        return found

    # ---- steps

    def write(self, step: int) -> None:
        """Writes what arrived and tells which series gave nothing."""
        self.step = step
        report = self._journal.write(step)
        self.written = report["bytes"]
        if report["error"] and report["error"] != self._failed:
            logger.error("monitor: step %d is not complete: %s", step, report["error"])
        self._failed = report["error"]
        for tag, statistic, rule, value, mean in report["alarms"]:
            message = f"{rule}: {statistic} of {tag} is {value} at step {step}, the running mean before it {mean}"
            logger.warning("monitor: %s", message)
            if self._anomalies is not None:
                self._anomalies.add(tag, message, step, self.calls.get(tag, -1))
        if self._anomalies is not None:
            self._anomalies.write()
        excused, self._excused = self._excused, set()
        same = report["same_rows"]
        self.liveness.step(step, report["rows"], len(self._expected), lambda: self._silent_now(same, excused))
        self.calls.clear()

    def _silent_now(self, same: bool, excused: set) -> list:
        """As _silent(), which most steps answer as the one before did."""
        asked = (self._changes, excused)
        if not same or asked != self._asked:
            self._asked, self._answer = asked, self._silent(set(self._journal.heard(False)), excused)
        return self._answer

    def _silent(self, heard: set, excused: Iterable = ()) -> list:
        return [
            (table, name, self._reason(table, name))
            for (table, name), numbers in self._expected.items()
            if heard.isdisjoint(numbers) and table not in excused
        ]

    def end(self, state: str = "ended") -> None:
        """Says what the whole run had."""
        self.liveness.end(state, self.step, self._silent(set(self._journal.heard(True))), len(self._expected))


# What comes from calls of modules and functions.
_OF_CODE = frozenset(
    [name for name in TABLES if name.endswith("_hook")]
    + "model_input input_checksum loss loss_factor actv actv_grad".split()
    + "health_activation health_logits health_router health_attention other".split()
)
_REASONS = {
    "actv": "its forward did not run, or not in training mode",
    "actv_grad": "no gradient came to it",
    "grad_unreduced": "no gradient came to it",
    "grad_reduced": "its gradient was None when the optimizer stepped",
    "exp_avg": "the optimizer has no such state of it",
    "exp_avg_sq": "the optimizer has no such state of it",
    "param_origin": "the optimizer did not step",
    "param_updated": "the optimizer did not step",
    "param_update": "the optimizer did not step",
}

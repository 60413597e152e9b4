"""A configuration as values: what loader.py makes of config.json and of the arguments that override it."""

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from .keys import BY_NAME


class Slice(NamedTuple):
    """The part of a dimension to record, as in `tensor[begin:end]`.

    Attributes:
        dim: Index of the dimension, from 0.
        size: Apply only to tensors whose dimension has this length; None for all.
        begin: First index; negative values count from the end.
        end: Index after the last; None for the end.
    """

    dim: int
    size: Optional[int]
    begin: int
    end: Optional[int]


class Load(NamedTuple):
    """Recorded inputs that replace the inputs of modules.

    Attributes:
        path: `dump_path` of an earlier dump with task tensor.
        modules: Names of the module forwards to replace the inputs of.
        step: Steps in which to do so; empty for all.
        rank: Ranks on which to do so; empty for all.
        dump_after_load: Whether to record the step as well.
    """

    path: str
    modules: tuple[str, ...]
    step: tuple[int, ...]
    rank: tuple[int, ...]
    dump_after_load: bool


def _key(name: str) -> Any:
    """A field of Config with the default of its key."""
    return field(default_factory=lambda: copy.copy(BY_NAME[name].default))


@dataclass
class Config:
    """A valid configuration, with defaults filled in. docs/en/capture/config.md describes each key.

    The fields are the keys of config.json, with `list_` and `slice_` for `list` and `slice`; keys of other tasks' sections
    have their defaults. Empty `rank` and `step` mean all.

    Attributes:
        section: The section of the task as it is in the file.
        config_path: Path of the file.
        places: Where each given key comes from: file and line, or argument.
        warnings: Harmless problems, such as unknown keys and keys without effect.
    """

    task: str = _key("task")
    level: str = _key("level")
    dump_path: str = _key("dump_path")
    rank: list[int] = _key("rank")
    step: list[int] = _key("step")
    extra_info: bool = _key("extra_info")
    risk_level: str = _key("risk_level")
    # of the section of the task
    scope: list[str] = _key("scope")
    list_: list[str] = _key("list")
    data_mode: list[str] = _key("data_mode")
    summary_mode: str = _key("summary_mode")
    tensor_list: list[str] = _key("tensor_list")
    slice_: list[Slice] = _key("slice")
    request_id: Optional[str] = _key("request_id")
    # of tasks that decide after an op ran whether it is kept
    overflow_nums: int = _key("overflow_nums")
    check_mode: str = _key("check_mode")
    bench_path: str = _key("bench_path")
    diff_nums: int = _key("diff_nums")
    last_ops: int = _key("last_ops")
    # of task grad_probe
    grad_level: str = _key("grad_level")
    param_list: list[str] = _key("param_list")
    bounds: list[float] = _key("bounds")
    # which functions are recorded, beside the built-in rules
    custom_apis: dict[str, list[str]] = _key("custom_apis")
    exclude_apis: list[str] = _key("exclude_apis")
    custom_op_namespaces: list[str] = _key("custom_op_namespaces")
    # reproducibility
    seed: Optional[int] = _key("seed")
    is_deterministic: bool = _key("is_deterministic")
    # other ways to run
    dump_enable: Optional[bool] = _key("dump_enable")
    async_dump: bool = _key("async_dump")
    precision: str = _key("precision")
    enable_dataloader: bool = _key("enable_dataloader")
    # after the last step: True raises an exception, False lets the run go on, None means True with enable_dataloader
    exit_after_range: Optional[bool] = _key("exit_after_range")
    load: Optional[Load] = _key("load")
    budget: dict[str, Any] = _key("budget")  # {"disk": bytes, "slowdown": factor}, each where it is given
    section: dict[str, Any] = field(default_factory=dict)  # of the task, as it stands in the file
    config_path: str = ""
    places: dict[str, str] = field(default_factory=dict)  # key -> file and line, or argument
    warnings: list[str] = field(default_factory=list)

    def collects(self, what: str) -> bool:
        """Tells whether a side or direction is recorded.

        Args:
            what: `input`, `output`, `forward` or `backward`.

        Returns:
            Whether `data_mode` includes it.
        """
        return self.data_mode == ["all"] or what in self.data_mode

    def place(self, key: str) -> str:
        """Tells where the value of a key comes from, for messages.

        Args:
            key: Name of the key.

        Returns:
            File and line, or the argument; the path of the file for defaults.
        """
        return self.places.get(key, self.config_path)

    @property
    def exits_after_range(self) -> bool:
        """Whether start() raises after the last step: `exit_after_range`, or its default."""
        return self.enable_dataloader if self.exit_after_range is None else self.exit_after_range

    @property
    def only_loads(self) -> bool:
        """Whether inputs are replaced and nothing is recorded."""
        return self.load is not None and not self.load.dump_after_load

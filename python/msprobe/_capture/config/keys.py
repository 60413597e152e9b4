"""The keys of config.json: their types, defaults and values, and when a change of them in a watched file counts."""

import re
from typing import Any, NamedTuple

TASKS = (
    "statistics",
    "tensor",
    "structure",
    "acc_check",
    "diff_check",
    "nan_check",
    "exception_dump",
    "overflow_check",
    "free_benchmark",
    "grad_probe",
    "run_ut",
)
LEVELS = ("L0", "L1", "L2", "mix", "debug")
SUMMARY_MODES = ("statistics", "md5", "xor")
RISK_LEVELS = ("CORE", "FOCUS", "ALL")
PRECISIONS = ("low", "high")
DATA_MODES = ("all", "input", "output", "forward", "backward")
CHECK_MODES = ("all", "aicore", "atomic")
GRAD_LEVELS = ("L0", "L1", "L2")
MAX_INDEX = 1_000_000
MAX_LAST_OPS = 100_000
MAX_SEED = 2**32 - 1

API_NAME = (
    r"(Distributed|Functional|Torch|Tensor|Mint|MintFunctional|Primitive|Aten|VF|NPU|Jit)\..*\.\d+\.(forward|backward)"
)
MODULE_NAME = r"(Cell|Module)\..*\.(forward|backward)\.\d+"
SCOPE_NAMES = {"L0": MODULE_NAME, "L1": API_NAME, "mix": f"{API_NAME}|{MODULE_NAME}"}
RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")

NOW, NEXT_START, NEVER = "now", "next_start", "never"
OF_EACH_START = frozenset(("dump_path", "rank", "step"))  # read at each start(), so that a change needs no other hooks
COMMON = ("",)  # at the top level, not in the object of a task
FILTERS = ("*",)  # in the object of every task


class Key(NamedTuple):
    """One key of config.json. `kind` chooses the reader of loader.py; without one the key is known and has no effect."""

    name: str
    kind: str
    default: Any = None
    allowed: Any = None  # choices of kind choice, the largest value of kind integer
    sections: tuple = COMMON  # objects that may hold it
    reload: str = NEXT_START  # when a change in a watched file counts
    owner: str = ""  # module that acts on it

    @property
    def field(self) -> str:
        """Its attribute of Config; `list` and `slice` are names of Python's."""
        return f"{self.name}_" if self.name in ("list", "slice") else self.name


# In the order in which they are read, so that the first wrong one is named.
KEYS = (
    Key("task", "choice", "statistics", TASKS, owner="tasks"),
    Key("level", "choice", "L1", LEVELS, owner="hooks"),
    Key("load", "load", owner="load_inputs"),
    Key("dump_path", "dump_path", "", owner="debugger"),
    Key("rank", "indices", [], owner="schedule"),
    Key("step", "indices", [], owner="schedule"),
    Key("extra_info", "flag", True, owner="hooks"),
    Key("async_dump", "flag", False, owner="config"),
    Key("dump_enable", "flag", None, reload=NOW, owner="reload"),
    Key("enable_dataloader", "flag", False, reload=NEVER, owner="dataloader"),
    Key("is_deterministic", "flag", False, reload=NEVER, owner="seed"),
    Key("precision", "choice", "low", PRECISIONS, owner="config"),
    Key("risk_level", "risk_level", "FOCUS", RISK_LEVELS, owner="hooks"),
    Key("custom_op_namespaces", "strings", ["_C_ascend"], owner="custom_ops"),
    Key("budget", "budget", {}, owner="budget"),
    Key("seed", "integer", None, MAX_SEED, reload=NEVER, owner="seed"),
    Key("exit_after_range", "flag", None, owner="debugger"),
    Key("scope", "scope", [], sections=FILTERS, owner="hooks"),
    Key("list", "strings", [], sections=FILTERS, owner="hooks"),
    Key("data_mode", "data_mode", ["all"], DATA_MODES, FILTERS, owner="hooks"),
    Key("summary_mode", "choice", "statistics", SUMMARY_MODES, FILTERS, owner="hooks"),
    Key("tensor_list", "strings", [], sections=("statistics", "nan_check"), owner="hooks"),
    Key("slice", "slice", [], sections=FILTERS, owner="slices"),
    Key("request_id", "text", None, sections=FILTERS, owner="slices"),
    Key("overflow_nums", "count", 1, sections=("overflow_check",), owner="tasks"),
    Key("diff_nums", "count", 1, sections=("tensor", "diff_check"), owner="tasks"),
    Key("check_mode", "choice", "all", CHECK_MODES, ("overflow_check",), owner="tasks"),
    Key("last_ops", "integer", 32, MAX_LAST_OPS, ("exception_dump",), owner="tasks"),
    Key("bench_path", "bench_path", "", sections=("tensor", "diff_check"), owner="tasks"),
    Key("exclude_apis", "strings", [], owner="hooks"),
    Key("custom_apis", "api_lists", {}, owner="hooks"),
    Key("grad_level", "choice", "L1", GRAD_LEVELS, ("grad_probe",), owner="grad_probe"),
    Key("param_list", "strings", [], sections=("grad_probe",), owner="grad_probe"),
    Key("bounds", "bounds", [-1, 0, 1], sections=("grad_probe",), owner="grad_probe"),
    *(Key(name, "", sections=("tensor",)) for name in ("file_format", "backward_input")),
    *(
        Key(name, "", sections=("acc_check", "run_ut"))
        for name in ("white_list", "black_list", "error_data_path", "output_postprocess")
    ),
    *(Key(name, "", sections=("acc_check", "run_ut")) for name in ("is_online", "rank_list")),
    *(
        Key(name, "", sections=("tensor", "acc_check", "run_ut"))
        for name in ("nfs_path", "host", "port", "tls_path", "token_path")
    ),
    *(
        Key(name, "", sections=("tensor",))
        for name in ("online_run_ut", "online_run_ut_recompute", "online_queue_mb", "online_wait", "online_end_wait")
    ),
    *(
        Key(name, "", sections=("free_benchmark",))
        for name in (
            *("fuzz_device", "pert_mode", "handler_type", "fuzz_level", "fuzz_stage"),
            *("if_preheat", "preheat_step", "max_sample"),
        )
    ),
)
BY_NAME = {key.name: key for key in KEYS}
READ_KEYS = tuple(key for key in KEYS if key.kind)


def _known(section: str) -> frozenset:
    return frozenset(key.name for key in KEYS if section in key.sections or key.sections == FILTERS)


TOP_KEYS = frozenset(key.name for key in KEYS if key.sections == COMMON)
KNOWN_SECTION_KEYS = {section: _known(section) for section in TASKS}
LOAD_KEYS = frozenset("path modules step rank dump_after_load".split())
FORWARD_OF_MODULE = re.compile(r"(Module|Cell)\..+\.forward\.\d+")
# Read when it stands beside the configuration and the key custom_apis is absent.
CUSTOM_APIS_FILE = "custom_wrap_ops.yaml"

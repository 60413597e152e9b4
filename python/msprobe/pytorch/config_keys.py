"""The keys of config.json, and which values they may have."""

import re

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
MAX_INDEX = 1_000_000
MAX_LAST_OPS = 100_000
MAX_SEED = 2**32 - 1

API_NAME = (
    r"(Distributed|Functional|Torch|Tensor|Mint|MintFunctional|Primitive|Aten|VF|NPU|Jit)\..*\.\d+\.(forward|backward)"
)
MODULE_NAME = r"(Cell|Module)\..*\.(forward|backward)\.\d+"
SCOPE_NAMES = {"L0": MODULE_NAME, "L1": API_NAME, "mix": f"{API_NAME}|{MODULE_NAME}"}
RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")

TOP_KEYS = frozenset(
    "task dump_path rank step level dump_enable extra_info async_dump precision risk_level custom_op_namespaces load "
    "enable_dataloader budget seed is_deterministic custom_apis exclude_apis exit_after_range".split()
)
FILTER_KEYS = "scope list data_mode summary_mode slice request_id "
SECTION_KEYS = {
    "statistics": FILTER_KEYS + "tensor_list",
    "tensor": FILTER_KEYS + "bench_path diff_nums file_format backward_input",
    "structure": FILTER_KEYS,
    "acc_check": FILTER_KEYS + "white_list black_list error_data_path",
    "run_ut": FILTER_KEYS + "white_list black_list error_data_path",
    "diff_check": FILTER_KEYS + "diff_nums bench_path",
    "nan_check": FILTER_KEYS + "tensor_list",
    "exception_dump": FILTER_KEYS + "last_ops",
    "overflow_check": FILTER_KEYS + "overflow_nums check_mode",
    "free_benchmark": FILTER_KEYS + "fuzz_device pert_mode handler_type fuzz_level fuzz_stage if_preheat preheat_step "
    "max_sample",
    "grad_probe": FILTER_KEYS + "grad_level param_list bounds",
}
KNOWN_SECTION_KEYS = {section: frozenset(keys.split()) for section, keys in SECTION_KEYS.items()}
LOAD_KEYS = frozenset("path modules step rank dump_after_load".split())
FORWARD_OF_MODULE = re.compile(r"Module\..+\.forward\.\d+")
# Read when it stands beside the configuration and the key custom_apis is absent.
CUSTOM_APIS_FILE = "custom_wrap_ops.yaml"

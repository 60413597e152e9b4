"""`compare` and `compare_distributed` for scripts: the command of this installation, in the older form of its options."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Optional

from ._environment import find_command

# What the functions take beside their own parameters, and how the command calls it.
_FLAGS = {
    "auto_analyze": None,
    "stack_mode": "--stack_mode",
    "fuzzy_match": "--fuzzy_match",
    "highlight": "--highlight",
    "first_diff_analyze": "--diff_analyze",
    "diff_analyze": "--diff_analyze",
    "is_print_compare_log": "--is_print_compare_log",
    "consistent_check": "--consistent_check",
    "html": "--html",
    "structure": "--structure",
    "unmatched": "--unmatched",
}
_MAPPINGS = {
    "cell_mapping": "--cell_mapping",
    "api_mapping": "--api_mapping",
    "data_mapping": "--data_mapping",
    "layer_mapping": "--layer_mapping",
}


class CompareException(Exception):
    """A comparison that could not be made; the text says what, where, and what to do. `code` is the exit code of the command:
    2 wrong arguments, 3 input that cannot be compared, 4 an error of the tool or the machine."""

    def __init__(self, text: str, code: int = 2):
        super().__init__(text)
        self.code = code


def compare(
    input_param: dict,
    output_path: str = "./output",
    stack_mode: bool = False,
    auto_analyze: bool = True,
    fuzzy_match: bool = False,
    **options,
) -> dict:
    """Compares two dumps into a workbook in `output_path` and returns the summary: counts, the first difference, the files.

    input_param: {"npu_json_path": ..., "bench_json_path": ..., "stack_json_path": ..., "is_print_compare_log": ...}, also
    with the names of compare.json ("npu_path", "bench_path", "stack_path"); dump.json files or directories.
    options: cell_mapping, api_mapping, data_mapping, layer_mapping (a path, a dict, or True for the default of its kind),
    highlight, html, consistent_check, backend, custom_metric (a file or a directory, see docs/en/compare/custom_metrics.md),
    replay (True or the number of ops, see docs/en/compare/replay.md), config (a file, see docs/en/compare/postprocess.md).
    """
    if not isinstance(input_param, dict):
        raise CompareException("compare: input_param must be a dict with npu_json_path and bench_json_path")
    paths = {}
    for key in ("npu", "bench", "stack"):
        value = input_param.get(f"{key}_json_path", input_param.get(f"{key}_path"))
        if value is not None and not isinstance(value, (str, os.PathLike)):
            raise CompareException(f"compare: {key}_json_path must be a path, not {type(value).__name__}")
        if value:
            paths[f"{key}_path"] = os.fspath(value)
    if "npu_path" not in paths or "bench_path" not in paths:
        raise CompareException("compare: input_param needs npu_json_path and bench_json_path")
    options = {**options, "stack_mode": stack_mode, "auto_analyze": auto_analyze, "fuzzy_match": fuzzy_match}
    if input_param.get("is_print_compare_log") is True:
        options["is_print_compare_log"] = True
    return _run(paths, output_path, options)


def compare_distributed(npu_dump_dir: str, bench_dump_dir: str, output_path: str = "./output", **options) -> dict:
    """Compares all ranks of two steps (or all steps of two dumps), a workbook for each pair; options as of compare()."""
    if options.get("suffix"):
        raise CompareException("compare_distributed: suffix is not for several ranks: each result has its rank's name")
    return _run({"npu_path": os.fspath(npu_dump_dir), "bench_path": os.fspath(bench_dump_dir)}, output_path, options)


def _arguments(options: dict, folder: str) -> list:
    arguments = []
    for name, value in options.items():
        if name in _FLAGS:
            if not isinstance(value, bool):
                raise CompareException(f"compare: {name} must be True or False, not {value!r}")
            if name == "auto_analyze":
                arguments += [] if value else ["--compare_only"]
            elif value:
                arguments.append(_FLAGS[name])
        elif name in _MAPPINGS:
            if not value:
                continue
            arguments.append(_MAPPINGS[name])
            if isinstance(value, (dict, list)):
                path = os.path.join(folder, name + ".yaml")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(value, file, ensure_ascii=False)  # which is YAML, too
                arguments.append(path)
            elif value is not True:
                arguments.append(os.fspath(value))
        elif name == "custom_metric":
            arguments += ["--custom_metric", os.fspath(value)] if value else []
        elif name == "replay":
            arguments += _replay_arguments(value)
        elif name == "suggest_mapping":
            arguments += ["--suggest_mapping", os.fspath(value)] if value else []
        elif name == "backend":
            arguments += ["--backend", str(value)] if value else []
        elif name == "config":
            arguments += ["--config", os.fspath(value)] if value else []
        elif name in ("suffix", "xlsx"):
            if value and name != "xlsx":
                raise CompareException(f"compare: {name} is not supported: leave it out")
        else:
            known = [*_FLAGS, *_MAPPINGS, "backend", "config", "custom_metric", "replay", "suggest_mapping"]
            raise CompareException(f"compare: unknown option {name!r}: known are {', '.join(known)}")
    return arguments


def _replay_arguments(value: Any) -> list:
    if isinstance(value, bool):
        return ["--replay"] if value else []
    if not isinstance(value, int) or value < 1:
        raise CompareException(f"compare: replay must be True or the number of ops, not {value!r}")
    return ["--replay", str(value)]


def _command() -> str:
    command: Optional[str] = os.environ.get("MSPROBE_BIN") or find_command()
    if command is None:
        raise CompareException(
            "compare: the command msprobe of this installation was not found: install the package again", 4
        )
    return command


def _run(paths: dict, output_path: str, options: dict) -> dict:
    with tempfile.TemporaryDirectory(prefix="msprobe_compare_") as folder:
        pair = os.path.join(folder, "compare.json")
        with open(pair, "w", encoding="utf-8") as file:
            json.dump({key: os.path.abspath(path) for key, path in paths.items()}, file)
        arguments = _arguments(options, folder)
        done = subprocess.run(
            [_command(), "compare", "--newer_columns", "-i", pair, "-o", os.fspath(output_path), "--json", *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            env={"MSPROBE_PYTHON": sys.executable, **os.environ},  # runs custom metrics
        )
    if options.get("is_print_compare_log"):
        for line in done.stderr.splitlines():
            if not line.startswith("[msprobe] "):
                print(line)  # where scripts look for them
    problems = [line for line in done.stderr.splitlines() if line.startswith("[msprobe] error: ")]
    if done.returncode != 0:
        text = problems[-1][len("[msprobe] error: ") :] if problems else done.stderr.strip() or "compare failed"
        raise CompareException(text, done.returncode)
    return json.loads(done.stdout)

"""`compare` and `compare_distributed` for scripts: they run the command of this installation and read its JSON."""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Union

from ._compare_result import CompareArgumentError, CompareInputError, CompareInternalError, CompareResult, failure
from ._environment import find_command

if TYPE_CHECKING:
    from typing_extensions import Unpack

PathLike = Union[str, "os.PathLike[str]"]
# A file; the same as a dict or list; True: the mapping that comes with the tool, of the kinds that have one.
MappingLike = Union[PathLike, dict, list, bool, None]


class CompareOptions(TypedDict, total=False):
    """Keyword options of `compare` and `compare_distributed`: each is the option of `msprobe compare` with the same name.

    Attributes:
        cell_mapping: Which module of the target matches which of the golden run. Mappings are the path of a YAML
            file, its content as a dict, or True for the built-in one (docs/en/compare/matching.md).
        api_mapping: MindSpore functions against PyTorch functions, in addition to those the tool knows.
        data_mapping: Which input or output of the target matches which of the golden run.
        layer_mapping: Modules by their place in the model.
        template: The name of a built-in layer mapping, instead of `layer_mapping`.
        consistent_check: Compare training (target) with inference (golden run); needs `backend`.
        backend: What trained the target: `fsdp` or `megatron`.
        structure: Compare the structure of the models and no values.
        html: Also write an HTML report.
        highlight: Colour rows of the workbook, with the reason.
        unmatched: Also write a table of the ops without a partner.
        suggest_mapping: Write a layer mapping for renamed modules to this path, for review.
        diff_analyze: Write the first ops beyond mindstudio-probe's thresholds as JSON, instead of a table.
        ruler: Add columns with each difference in units of what rounding explains (docs/en/compare/ruler.md).
        custom_metric: A Python file that defines a metric, or a directory of such files
            (docs/en/compare/custom_metrics.md).
        replay: Call ops again in float64 and tell which side is closer: True, or the maximum number of ops. Needs dumps
            with tensors and a Python with PyTorch (docs/en/compare/replay.md).
        thresholds: A YAML file with the numbers by which rows are judged (docs/en/compare/thresholds.md).
        calibrate: The dump of a second golden run: what differs between the two golden runs counts as noise.
        config: A YAML file of matrices that tensors are multiplied with first (docs/en/compare/postprocess.md).
        rank: MindSpore kernel dumps: only these ranks.
        step: MindSpore kernel dumps: only these steps.
        first_diff_analyze: mindstudio-probe's name for `diff_analyze`.
        is_print_compare_log: Print a line for each row of tensor dumps.
        xlsx: Accepted and without effect: the table is a workbook anyway.
        suffix: Accepted if empty.
    """

    cell_mapping: MappingLike
    api_mapping: MappingLike
    data_mapping: MappingLike
    layer_mapping: MappingLike
    template: str | None
    consistent_check: bool
    backend: str | None
    structure: bool
    html: bool
    highlight: bool
    unmatched: bool
    suggest_mapping: PathLike | None
    diff_analyze: bool
    ruler: bool
    custom_metric: PathLike | None
    replay: bool | int
    thresholds: PathLike | None
    calibrate: PathLike | None
    config: PathLike | None
    rank: int | list[int] | None
    step: int | list[int] | None
    first_diff_analyze: bool
    is_print_compare_log: bool
    xlsx: bool
    suffix: str | None


class DistributedOptions(CompareOptions, total=False):
    """CompareOptions plus the three that are positional parameters of `compare`.

    Attributes:
        stack_mode: Add a column with the call stack of each op.
        auto_analyze: Also write mindstudio-probe's advice; the default is True.
        fuzzy_match: Match ops in order of execution and ignore their call numbers.
    """

    stack_mode: bool
    auto_analyze: bool
    fuzzy_match: bool


# How the command calls them, by the kind of their values. The table is a workbook in this form of the command anyway.
_FLAGS = {
    "consistent_check": "--consistent_check",
    "diff_analyze": "--diff_analyze",
    "first_diff_analyze": "--diff_analyze",
    "fuzzy_match": "--fuzzy_match",
    "highlight": "--highlight",
    "html": "--html",
    "is_print_compare_log": "--is_print_compare_log",
    "ruler": "--ruler",
    "stack_mode": "--stack_mode",
    "structure": "--structure",
    "unmatched": "--unmatched",
    "xlsx": "--xlsx",
}
_TEXTS = ("backend", "calibrate", "config", "custom_metric", "suggest_mapping", "template", "thresholds")
_MAPPINGS = ("cell_mapping", "api_mapping", "data_mapping", "layer_mapping")
_NUMBERS = ("rank", "step")
_KNOWN = (*_FLAGS, "auto_analyze", *_TEXTS, *_MAPPINGS, *_NUMBERS, "replay", "suffix")

_PROBLEM = re.compile(r"\[msprobe\] (error|warning): (.*)")


def compare(
    input_param: Mapping[str, Any] | None = None,
    output_path: PathLike = "./output",
    stack_mode: bool = False,
    auto_analyze: bool = True,
    fuzzy_match: bool = False,
    *,
    target: PathLike | None = None,
    golden: PathLike | None = None,
    **options: Unpack[CompareOptions],
) -> CompareResult:
    """Compares the dumps of two runs and finds where they begin to differ.

        result = compare(target="problem/step0", golden="golden/step0", output_path="out", html=True)
        print(result)                # Origin: rank 2, step 0, layers.1.mlp.linear_fc1: its parameter weight differs ...
        result.verdict["origins"]    # the same as data
        result.files                 # the workbooks, out/first_divergence.json, the report

    Calls written for mindstudio-probe work unchanged: `compare({"npu_json_path": ..., "bench_json_path": ...}, "out")`.

    Args:
        input_param: mindstudio-probe's form, instead of `target` and `golden`: a dict with `npu_json_path` and
            `bench_json_path`, optionally `stack_json_path` and `is_print_compare_log`, and for MindSpore kernel dumps
            `rank_id` and `step_id`. The shorter names of compare.json work too: `npu_path`, `bench_path`, `stack_path`.
        output_path: Directory for the results; created if missing.
        stack_mode: Add a column with the call stack of each op.
        auto_analyze: Also write mindstudio-probe's advice, advisor_TIME.txt.
        fuzzy_match: Match ops in order of execution and ignore their call numbers.
        target: The run under test: a dump.json, or a rank, step or dump directory. Directories with several ranks or steps
            are compared pair by pair.
        golden: The reference run, in the same form.
        **options: See `help(msprobe.CompareOptions)`.

    Returns:
        The verdict, the number of ops by verdict, and the paths of all files written. (mindstudio-probe returns None.)

    Raises:
        CompareArgumentError: An argument is unknown or invalid, or conflicts with another one.
        CompareInputError: A dump or another input file is missing, unreadable or unsuitable. If only some of several pairs
            failed, `result` on the exception holds the others.
        CompareInternalError: The disk or memory is full, the installation is broken, or the command was killed.
            All three are subclasses of CompareException.
    """
    paths = _paths(input_param, target, golden)
    given: dict[str, Any] = {
        **options,
        "stack_mode": stack_mode,
        "auto_analyze": auto_analyze,
        "fuzzy_match": fuzzy_match,
    }
    if input_param and input_param.get("is_print_compare_log") is True:
        given["is_print_compare_log"] = True
    return _run(paths, output_path, given)


def compare_distributed(
    npu_dump_dir: PathLike,
    bench_dump_dir: PathLike,
    output_path: PathLike = "./output",
    **options: Unpack[DistributedOptions],
) -> CompareResult:
    """Compares all ranks of two steps, or all steps of two dumps: `compare` under mindstudio-probe's name.

    Args:
        npu_dump_dir: The run under test: a step directory or a whole dump.
        bench_dump_dir: The reference run, in the same form.
        output_path: Directory for the results, one workbook per pair; created if missing.
        **options: The options of compare(), including `stack_mode`, `auto_analyze` and `fuzzy_match`.

    Returns:
        The verdict over all ranks and steps, the number of ops by verdict, and the paths of all files written.

    Raises:
        CompareArgumentError: An argument is unknown or invalid, or conflicts with another one.
        CompareInputError: See compare(); `result` on the exception holds the pairs that could be compared.
        CompareInternalError: See compare().
    """
    if options.get("suffix"):
        raise CompareArgumentError(
            "compare_distributed: suffix is not for several ranks: each result has its rank's name"
        )
    return _run(_paths(None, npu_dump_dir, bench_dump_dir), output_path, dict(options))


def _paths(input_param: Any, target: Any, golden: Any) -> dict[str, Any]:
    """The content of compare.json."""
    if input_param is None:
        given = {"npu": ("target", target), "bench": ("golden", golden)}
    elif target is not None or golden is not None:
        raise CompareArgumentError("compare: input_param and target, golden say the same: give one of the two forms")
    elif not isinstance(input_param, Mapping):
        kind = type(input_param).__name__
        raise CompareArgumentError(
            f"compare: input_param must be a dict with npu_json_path and bench_json_path, not {kind}; paths go by keyword: "
            "compare(target=..., golden=...)"
        )
    else:
        names = {key: f"{key}_json_path" for key in ("npu", "bench", "stack")}
        given = {key: (name, input_param.get(name, input_param.get(f"{key}_path"))) for key, name in names.items()}
    result: dict[str, Any] = {}
    for key, (name, value) in given.items():
        if value is not None and not isinstance(value, (str, os.PathLike)):
            raise CompareArgumentError(f"compare: {name} must be a path, not {type(value).__name__}")
        if value:
            result[f"{key}_path"] = os.path.abspath(value)
        elif key != "stack":
            raise CompareArgumentError(f"compare: {name} is missing: give the paths of both runs")
    if input_param:
        result.update({key: input_param[key] for key in ("rank_id", "step_id") if key in input_param})
    return result


def _arguments(options: Mapping[str, Any], folder: str) -> list[str]:
    """The options as the command takes them; mappings that are not files are written into `folder`."""
    arguments: list[str] = []
    for name, value in options.items():
        if name in _FLAGS or name == "auto_analyze":
            if not isinstance(value, bool):
                raise CompareArgumentError(f"compare: {name} must be True or False, not {value!r}")
            if name == "auto_analyze":
                arguments += [] if value else ["--compare_only"]
            elif value:
                arguments.append(_FLAGS[name])
        elif name in _MAPPINGS:
            arguments += _mapping_arguments(name, value, folder)
        elif name in _TEXTS:
            if value is not None and not isinstance(value, (str, os.PathLike)):
                raise CompareArgumentError(f"compare: {name} must be text or a path, not {value!r}")
            arguments += [f"--{name}", os.fspath(value)] if value else []
        elif name in _NUMBERS:
            arguments += _number_arguments(name, value)
        elif name == "replay":
            arguments += _replay_arguments(value)
        elif name == "suffix":
            if value:
                raise CompareArgumentError("compare: suffix is not supported: leave it out")
        else:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"did you mean {near[0]!r}? Known are" if near else "known are"
            raise CompareArgumentError(f"compare: unknown option {name!r}: {hint} {', '.join(_KNOWN)}")
    return arguments


def _mapping_arguments(name: str, value: Any, folder: str) -> list[str]:
    if not value:
        return []
    if value is True:
        return [f"--{name}"]
    if isinstance(value, (dict, list)):
        path = os.path.join(folder, name + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False)  # which is YAML, too
        return [f"--{name}", path]
    if not isinstance(value, (str, os.PathLike)):
        raise CompareArgumentError(f"compare: {name} must be a path, a dict or True, not {value!r}")
    return [f"--{name}", os.fspath(value)]


def _number_arguments(name: str, value: Any) -> list[str]:
    numbers = [value] if isinstance(value, int) else [] if value is None else value
    if not isinstance(numbers, (list, tuple)) or any(type(n) is not int or n < 0 for n in numbers):
        raise CompareArgumentError(f"compare: {name} must be a number from 0 or a list of them, not {value!r}")
    return [f"--{name}", ",".join(map(str, numbers))] if numbers else []


def _replay_arguments(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["--replay"] if value else []
    if not isinstance(value, int) or value < 1:
        raise CompareArgumentError(f"compare: replay must be True or the number of ops, not {value!r}")
    return ["--replay", str(value)]


def _command() -> str:
    command = os.environ.get("MSPROBE_BIN") or find_command()
    if command is None:
        raise CompareInternalError("compare: this installation has no command msprobe: install the package again")
    return command


def _run(paths: Mapping[str, Any], output_path: PathLike, options: Mapping[str, Any]) -> CompareResult:
    with tempfile.TemporaryDirectory(prefix="msprobe_compare_") as folder:
        pair = os.path.join(folder, "compare.json")
        with open(pair, "w", encoding="utf-8") as file:
            json.dump(paths, file)
        arguments = [*_arguments(options, folder), "--json", "-i", pair, "-o", os.fspath(output_path)]
        command = _command()
        try:
            done = subprocess.run(
                [command, "compare", "--newer_columns", *arguments],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                env={"MSPROBE_PYTHON": sys.executable, **os.environ},  # runs custom metrics
            )
        except OSError as error:
            raise CompareInternalError(
                f"compare: {command} cannot be run ({error}): install the package again"
            ) from error
    return _read(done, bool(options.get("is_print_compare_log")))


def _read(done: subprocess.CompletedProcess[str], show_log: bool) -> CompareResult:
    """The exit code says whether it worked, stdout what was found; of stderr only the wording is used."""
    errors: list[str] = []
    warnings: list[str] = []
    for line in done.stderr.splitlines():
        problem = _PROBLEM.fullmatch(line)
        if problem:
            (errors if problem[1] == "error" else warnings).append(problem[2])
        elif show_log:
            print(line)  # where scripts look for them
    if done.returncode == 130:
        raise KeyboardInterrupt
    result = None
    if done.stdout.strip():
        try:
            result = CompareResult.from_summary(json.loads(done.stdout), tuple(warnings))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if done.returncode == 0:
                text = (
                    f"compare: {done.args[0]} printed no summary that this package knows: install both in one version"
                )
                raise CompareInternalError(text) from error
    if done.returncode == 0 and result is not None:
        return result
    # All pairs were compared, and what was given is not whole: the result says so first.
    if done.returncode == CompareInputError.code and result is not None and not result.whole:
        if not result.summary.get("failures"):
            return replace(result, warnings=(*result.warnings, *errors))
    raise failure(done.returncode, errors[-1] if errors else _unexplained(done), result)


def _unexplained(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        hint = ", probably by the system for want of memory" if name == "SIGKILL" else ""
        return f"compare: the command was ended by {name}{hint}: run {done.args[0]} compare in a terminal to see how far it comes"
    said = done.stderr.strip().splitlines()
    return f"compare: {done.args[0]} ended with code {done.returncode} and said {said[-1] if said else 'nothing'!r}"

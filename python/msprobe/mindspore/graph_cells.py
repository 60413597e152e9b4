"""Level L0 in GRAPH_MODE: Cells whose constructs are compiled with operators of MindSpore that dump what goes in and out.

Forward values go through TensorDump, gradients through DumpGradient. Both exist on an Ascend only, and write below
`{dump_path}/cells/`, which is compiled into the graph; graph_files.py makes steps of what they wrote.
"""

import json
import os
import types
from collections.abc import Iterable
from typing import Any

import mindspore
from mindspore import Tensor, ops

from .._capture.arguments import refuse
from .._capture.config import Config
from .._capture.files import make_directory, write_file
from .._capture.words import say, wrong
from . import graph_files, graph_modes, kernel_dump

_DATA_MODES = (["all"], ["forward"], ["backward"])
_wrapped: set = set()  # ids of Cells; their constructs are kept by the graphs


def are_meant(config: Config) -> bool:
    """Tells whether this configuration is about the Cells of graphs."""
    return config.level == "L0" and mindspore.get_context("mode") == mindspore.GRAPH_MODE


def check(config: Config) -> None:
    """Raises MsprobeException where Cells of graphs cannot be dumped."""
    if mindspore.get_context("device_target") != "Ascend":
        text = (
            "level %(level)s in GRAPH_MODE needs an Ascend, for TensorDump is an operator of it: use level L2, or "
            "mindspore.set_context(mode=mindspore.PYNATIVE_MODE) (start)"
        )
        refuse(say(text, level=config.level))
    if config.task not in ("statistics", "tensor"):
        refuse(wrong("task", config.task, "statistics, tensor in GRAPH_MODE", config.place("task")))
    for name, value in (("rank", config.rank), ("scope", config.scope), ("list", config.list_)):
        if value:
            refuse(wrong(name, list(value), "[] in GRAPH_MODE", config.place(name)))
    if list(config.data_mode) not in _DATA_MODES:
        allowed = "one of all, forward, backward in GRAPH_MODE"
        refuse(wrong("data_mode", list(config.data_mode), allowed, config.place("data_mode")))
    if config.task == "statistics" and config.summary_mode != "statistics":
        allowed = "statistics in GRAPH_MODE"
        refuse(wrong("summary_mode", config.summary_mode, allowed, config.place("summary_mode")))


def settings(dump_path: str) -> dict:
    """Returns the settings of MindSpore's own dump for task statistics: those of what goes through TensorDump."""
    common = {
        "dump_mode": 1,
        "path": os.path.abspath(dump_path),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "statistic",
        "input_output": 0,
        "kernels": ["TensorDump"],
        "support_device": list(range(8)),
        "statistic_category": ["max", "min", "avg", "l2norm"],
    }
    return {
        "common_dump_settings": common,
        "e2e_dump_settings": {"enable": False, "trans_flag": True, "stat_calc_mode": "device"},
    }


def prepare(config: Config) -> None:
    """Before the first graph is compiled: tells the runtime what to compute.

    Raises:
        MsprobeException: The runtime does not write to such a path.
    """
    if config.task != "statistics":
        return
    kernel_dump.check_path(config)
    path = os.path.join(os.path.abspath(config.dump_path), f"{os.environ.get('RANK_ID', '')}kernel_kbyk_dump.json")
    write_file(path, json.dumps(settings(config.dump_path), indent=4).encode())
    os.environ["MINDSPORE_DUMP_CONFIG"] = path
    os.environ["MS_KERNEL_LAUNCH_SKIP"] = "TensorDump"


def wrap(cells: Iterable[tuple[str, Any]], config: Config) -> None:
    """Gives Cells a construct that dumps; `cells`: the prefix of their entries, and the Cell."""
    directory = graph_files.directory_of(config.dump_path)
    make_directory(directory)
    forward, backward = (list(config.data_mode) != [left_out] for left_out in ("backward", "forward"))
    cells = list(cells)
    modes = graph_modes.of_cells(cells, graph_modes.of_mindformers())
    for base, cell in cells:
        private = type(cell).__name__.startswith("_") or ".grad_reducer" in base
        if id(cell) not in _wrapped and not private:
            _wrapped.add(id(cell))
            stem = os.path.join(directory, base)
            cell.construct = types.MethodType(
                _dumping(cell.construct, stem, forward, backward, modes.get(id(cell), graph_modes.Modes())), cell
            )


def _dumping(construct: Any, stem: str, forward: bool, backward: bool, modes: graph_modes.Modes) -> Any:
    """Returns a construct around another one. MindSpore compiles it: paths are constants, conditions are known."""
    dump = ops.TensorDump()
    dump_given = ops.TensorDump("in")
    given_inputs, given_outputs = ((*side, *(False,) * 32)[:32] for side in modes)
    gradient = ops.DumpGradient() if backward else None
    places = range(32)
    inputs = tuple(f"{stem}.forward.input.{i}" for i in places)
    outputs = tuple(f"{stem}.forward.output.{i}" for i in places)
    input_gradients = tuple(f"{stem}.backward.output.{i}" for i in places)
    output_gradients = tuple(f"{stem}.backward.input.{i}" for i in places)

    def dumping_construct(self, *args):  # noqa: ANN001, ANN002, ANN202
        given = ()
        for i in range(len(args)):
            value = args[i]
            if isinstance(value, Tensor) and i < 32:
                if forward:
                    if given_inputs[i]:
                        dump_given(inputs[i], value)
                    else:
                        dump(inputs[i], value)
                if backward:
                    value = gradient(input_gradients[i], value, "out")
            given = given + (value,)
        result = construct(*given)
        if isinstance(result, tuple):
            results = ()
            for i in range(len(result)):
                value = result[i]
                if isinstance(value, Tensor) and i < 32:
                    if backward:
                        value = gradient(output_gradients[i], value, "in")
                    if forward:
                        if given_outputs[i]:
                            dump_given(outputs[i], value)
                        else:
                            dump(outputs[i], value)
                results = results + (value,)
            return results
        if isinstance(result, Tensor):
            if backward:
                result = gradient(output_gradients[0], result, "in")
            if forward:
                if given_outputs[0]:
                    dump_given(outputs[0], result)
                else:
                    dump(outputs[0], result)
        return result

    return dumping_construct

"""csv2tensorboard_by_step: the csv files of a monitor as event files of TensorBoard."""

import csv
import os
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from typing import Optional

from ... import _core
from ..._capture.files import make_directory
from ..._capture.log import logger
from ..._monitor import output
from ..._monitor.config import OPS, whole_number

DATA_TYPES = (
    "actv",
    "actv_grad",
    "exp_avg",
    "exp_avg_sq",
    "grad_unreduced",
    "grad_reduced",
    "param_origin",
    "param_updated",
)
_MOST_PROCESSES = 128
_NUMBERS = OPS[:-2]


def csv2tensorboard_by_step(
    monitor_path: str,
    time_start: Optional[str] = None,
    time_end: Optional[str] = None,
    process_num: int = 1,
    data_type_list: Optional[list] = None,
    output_dirpath: Optional[str] = None,
) -> None:
    """Writes `{output_dirpath}/rank{r}/{data type}/events.out.tfevents...`, tags being "vp0:fc.weight/norm".

    Args:
        monitor_path: The output directory of the monitors.
        time_start: The first directory, such as Dec03_21-34-40; None: no bound.
        time_end: The last directory; None: no bound.
        process_num: Ranks are converted by so many processes.
        data_type_list: Some of actv, actv_grad, exp_avg, exp_avg_sq, grad_unreduced, grad_reduced, param_origin,
            param_updated; None: all.
        output_dirpath: Where; None: `{monitor_path}/{time}-csv2tensorboard_by_step`.

    Raises:
        ValueError: An argument is wrong, or a file is not what a monitor writes.
        OSError: A file cannot be read or written.
    """
    process_num = min(whole_number(process_num, "process_num", 1, 1), _MOST_PROCESSES)
    kinds = list(data_type_list) if data_type_list else list(DATA_TYPES)
    wrong = [kind for kind in kinds if kind not in DATA_TYPES]
    if wrong:
        raise ValueError(f"data_type_list has {wrong[0]!r}; allowed: {', '.join(DATA_TYPES)}")
    directories = output.rank_directories(monitor_path, time_start, time_end)
    if not directories:
        raise ValueError(
            f"{monitor_path} has no directory of a monitor in this time: their names are like Dec03_21-34-40-rank0-1a2b3c4d"
        )
    if output_dirpath is None:
        output_dirpath = os.path.join(monitor_path, f"{output.time_name()}-csv2tensorboard_by_step")
    make_directory(output_dirpath)
    tasks = [(directory, rank, kinds, output_dirpath) for rank, directory in directories.items()]
    if process_num == 1:
        for task in tasks:
            _convert(*task)
    else:
        with ProcessPoolExecutor(process_num) as pool:
            for done in [pool.submit(_convert, *task) for task in tasks]:
                done.result()
    logger.info("monitor: event files of %d ranks are in %s", len(tasks), output_dirpath)


def _convert(directory: str, rank: int, kinds: list, into: str) -> None:
    for kind in kinds:
        pattern = re.compile(rf"{kind}_(\d+)-\d+\.csv$")
        files = [(int(m.group(1)), name) for name in os.listdir(directory) if (m := pattern.match(name))]
        if not files:
            continue
        target = os.path.join(into, f"rank{rank}", kind)
        if os.path.exists(target):
            logger.warning("monitor: %s is written anew", target)
            shutil.rmtree(target)
        events = _core.MonitorEvents(target)
        for _, name in sorted(files):
            _add_file(events, os.path.join(directory, name))
            events.flush()


def _add_file(events: "_core.MonitorEvents", path: str) -> None:
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.readlines()
        # A training that is killed leaves a part of a row: fewer columns, or a part of a number.
        if len(lines) > 1 and (not lines[-1].endswith("\n") or lines[-1].count(",") < lines[0].count(",")):
            logger.warning("monitor: %s, line %d was cut and is left out", path, len(lines))
            lines.pop()
        reader = csv.DictReader(lines)
        columns = [name for name in reader.fieldnames or () if name in _NUMBERS]
        for line, row in enumerate(reader, 2):
            try:
                tag = f"vp{row['vpp_stage']}:{row['name']}"
                tag += f":micro{row['micro_step']}" if "micro_step" in row else ""
                step = int(row["step"])
                for column in columns:
                    events.add_scalar(f"{tag}/{column}", step, float(row[column]))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}, line {line} is no row of a monitor: {error}") from None

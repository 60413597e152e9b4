"""`python -m msprobe.core.monitor.anomaly_processor -d DIR`: which anomaly of all ranks came first."""

import argparse
import ast
import sys

from ..._capture.log import logger
from ..._monitor import anomalies


def main(arguments: list) -> int:
    """Sorts the anomalies of all ranks into anomaly_analyse.json.

    Args:
        arguments: Of the command line.

    Returns:
        The exit code: 0, 2 for wrong arguments, 3 for files that cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog="anomaly_processor", description="The first anomalies of all ranks, in the order in which they happened."
    )
    parser.add_argument(
        "-d", "--data_path", required=True, metavar="DIR", help="the directory anomaly_detected of a monitored training"
    )
    parser.add_argument(
        "-o", "--out_path", default="", metavar="DIR", help="where anomaly_analyse.json is written; the same directory"
    )
    parser.add_argument("-k", "--topk", type=int, default=8, metavar="N", help="how many anomalies (8)")
    parser.add_argument("-s", "--step", default="[]", metavar="LIST", help="only of these steps, such as [1,3]")
    given = parser.parse_args(arguments)
    steps = _steps(given.step)
    if steps is None:
        parser.error(f"-s is {given.step}; allowed: a list of steps such as [1,3]")
    if given.topk <= 0:
        parser.error(f"-k is {given.topk}; allowed: an integer from 1")
    try:
        first = anomalies.first_anomalies(anomalies.load_anomalies(given.data_path), given.topk, steps)
        path = anomalies.write_analysis(first, given.out_path or given.data_path)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"[msprobe] error: {error}\n")
        return 3
    for number, anomaly in enumerate(first):
        logger.info("%d: %s", number, anomaly.message)
    logger.info("the first %d anomalies are in %s", len(first), path)
    return 0


def _steps(text: str) -> object:
    try:
        steps = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return steps if isinstance(steps, list) and all(isinstance(step, int) for step in steps) else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

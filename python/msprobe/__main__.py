"""`python -m msprobe ...` is `msprobe ...` of the same installation."""

import os
import sys

from ._environment import clash, find_command


def main() -> int:
    """Replaces this process with the command; returns an exit code if there is none to run."""
    problem, command = clash(), find_command()
    if not problem and command is None:
        problem = (
            "the program msprobe is not installed beside this package: install msprobe again with --force-reinstall"
        )
    if problem:
        print(f"[msprobe] error: {problem}", file=sys.stderr)
        return 4
    os.environ["MSPROBE_PACKAGE"] = os.path.dirname(os.path.abspath(__file__))
    os.environ.setdefault("MSPROBE_PYTHON", sys.executable)  # runs what users wrote in Python (compare --custom_metric)
    os.execv(command, ["msprobe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

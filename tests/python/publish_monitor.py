"""All cases of monitor_scenario.py under both tools: publish_monitor.py DIRECTORY [CASE...] prints a table."""

import os
import pathlib
import subprocess
import sys

import monitor_files
import monitor_scenario

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    directory, *cases = sys.argv[1:]
    print("| case | cells | the same text | other cells, rows or files |")
    print("|---|---|---|---|")
    for case in cases or monitor_scenario.CASES:
        for name, environment in (("old", ".venv-old"), ("new", ".venv")):
            output = os.path.join(directory, f"{name}.{case}")
            if not os.path.exists(output):
                python = ROOT / environment / "bin" / "python"
                subprocess.run([python, monitor_scenario.__file__, case, output], check=True, capture_output=True)
        old, new = (monitor_files.directories(os.path.join(directory, f"{name}.{case}")) for name in ("old", "new"))
        lines, cells, same = monitor_files.differences(old, new, 1_000_000)
        print(f"| {case} | {cells} | {same} | {len(lines)} |", flush=True)


if __name__ == "__main__":
    main()

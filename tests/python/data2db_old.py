"""Runs in the earlier tool's environment: its data2db for each `OUT|DATA|FORMAT|MAPPING|MICRO_STEP` of the arguments, or
with `--page FILE` what its trend page answers about a file.
"""

import json
import sys


def convert(jobs):
    from msprobe.core.compare.data2db import DBImporter

    for job in jobs:
        out, data, form, mapping, micro = job.split("|")
        DBImporter(out, data, form, mapping or None, micro).import_data()


def ask_page(path):
    from trend_analyzer.server.services.monvis_service import MonvisService

    page = MonvisService(path)
    said = {
        "metrics": page.get_metrics_stat(),
        "steps": page.get_values("forward", "norm", "step", []),
        "map": page.get_heatmap_data("forward", "norm", "rank", "0", []),
        "line": page.get_trend_data("forward", "norm", "step", "0", "1", []),
        "tags": page.get_tags("forward"),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    if sys.argv[1] == "--page":
        ask_page(sys.argv[2])
    else:
        convert(sys.argv[1:])

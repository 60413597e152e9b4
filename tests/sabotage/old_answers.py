"""What the earlier tool's `compare -da` says: `old_answers.py ROOT OUT.json`, in the interpreter where that tool is installed.

One process for all cases, as its start takes seconds. Writes {case: {"answers": [[rank, op], ...]} or {"error": text}}.
"""

import contextlib
import io
import json
import multiprocessing
import sys
import tempfile
from pathlib import Path


class AtOnce:
    """In the place of a process pool: its processes would import everything again."""

    def __init__(self, *args, **kwargs):
        pass

    def apply_async(self, call, args=(), kwargs=None, error_callback=None, callback=None):
        result = call(*args, **(kwargs or {}))
        if callback:
            callback(result)
        return self

    def get(self, timeout=None):
        return None

    def close(self):
        pass

    join = terminate = close

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def answers_of(analyzer, case):
    with tempfile.TemporaryDirectory() as out:
        analyzer(str(case / "target" / "step0"), str(case / "golden" / "step0"), out).analyze()
        found = sorted(Path(out).glob("diff_analyze_*.json"))
        if not found:
            return []
        ranks = json.loads(found[0].read_text())
    return [[int(rank.split("_")[1]), node["op_name"]] for rank, nodes in ranks.items() for node in nodes]


def main():
    root, out = Path(sys.argv[1]), Path(sys.argv[2])
    multiprocessing.Pool = AtOnce
    from msprobe.core.compare.find_first.analyzer import DiffAnalyzer

    found = {}
    for case in sorted(path for path in root.iterdir() if (path / "target" / "step0").is_dir()):
        log = io.StringIO()
        try:
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
                found[case.name] = {"answers": answers_of(DiffAnalyzer, case)}
        except Exception as error:  # noqa: BLE001 - whatever it fails with is its answer
            found[case.name] = {"error": f"{type(error).__name__}: {error}".strip()[:200]}
    out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What docs/{en,zh}/lab/relations.md says of the cells and of whole models; with --write, its tables.

.venv/bin/python tests/lab/publish_lab.py --write
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from oracle import compared
from published import replaced
from whole_models import MODELS
from whole_truth import first_difference

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]


def lab(command, *arguments):
    done = subprocess.run(
        [command, "lab", *map(str, arguments), "--json"],
        env={**os.environ, "MSPROBE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def whole_models(command, scratch, names):
    """Rows (model, change, truth, what the laboratory names)."""
    if not (scratch / "mlp").exists():
        subprocess.run([sys.executable, HERE / "whole_models.py", scratch], check=True, capture_output=True)
    rows = []
    for name in names:
        report = lab(command, scratch / name / "whole", "--relations", "row alone,half batch,chunked,padded")
        named = {origin["relation"]: origin["first"] for origin in report["origins"]}
        for change in ("row alone", "half batch", "chunked", "padded"):
            if (scratch / name / change).exists():
                batch = report["batch"] if change in ("chunked", "padded") else 0
                truth = first_difference(scratch / name / "whole", scratch / name / change, batch=batch)
                rows.append((name, change, truth, named[change]))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the tables of the two pages")
    parser.add_argument("--command", default=REPO / "build" / "release" / "msprobe", help="the command")
    parser.add_argument("--keep", default="", help="directory of the recorded runs, instead of one that goes")
    parser.add_argument("--only", nargs="*", help="names of models")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as gone:
        scratch = Path(args.keep or gone)
        if not (scratch / "oracle").exists():
            subprocess.run(
                [sys.executable, HERE / "oracle_calls.py", scratch / "oracle"], check=True, capture_output=True
            )
        count, equal, apart = compared(lab(args.command, scratch / "oracle"))
        rows = whole_models(args.command, scratch, args.only or MODELS)
    print(f"{equal} of {count} cells equal", *apart, sep="\n")
    lines = []
    for name, change, truth, named in rows:
        print(name, change, truth, named, sep=" | ")
        if truth or named:
            lines.append(f"| {name} | {change} | {f'`{truth}`' if truth else '-'} | {f'`{named}`' if named else '-'} |")
    differ = [row for row in rows if row[2]]
    traced = [row for row in differ if row[2] == row[3]]
    print(
        f"{len(rows)} runs, {len(differ)} differ, {len(traced)} traced; {sum(r[2] is None and r[3] is not None for r in rows)} only named"
    )
    if not args.write:
        return
    for language, head in (
        ("en", "| model | change | first op that differs | named |"),
        ("zh", "| 模型 | 改变 | 第一个不同的算子 | 指出的算子 |"),
    ):
        page = REPO / "docs" / language / "lab" / "relations.md"
        page.write_text(replaced(page.read_text(), "whole models", "\n".join([head, "|---|---|---|---|", *lines])))


if __name__ == "__main__":
    main()

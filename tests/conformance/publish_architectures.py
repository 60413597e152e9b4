"""Prints how the dumps of both tools agree: `publish_architectures.py PYTHON [MODEL ...]`, and keeps it in out/architectures.md.

PYTHON is the interpreter of the earlier tool. A value is a number or a text of an entry; `bits`: equal to the bit, `rounded`:
equal up to the rounding that docs/compatibility.md grants (Mean and Norm, what comes behind the first gradient where the
earlier tool changes the training); `classed`: allowed by a row of it; `unexplained`: neither.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from architectures import ARCHITECTURES
from captures import REPO, both_tools
from comparison import BITS, ROUNDING
from families import FAMILIES, levels_of

HEADER = (
    "| model | level | entries | values | bits | rounded | classed | unexplained |\n|---|---|---|---|---|---|---|---|"
)


def table(rows):
    lines, classes, sums = [HEADER], Counter(), Counter()
    for row in rows:
        equal, rounded = row.agree[BITS], row.agree[ROUNDING]
        counts = (row.entries, equal + rounded, equal, rounded, row.classes.total(), row.differences)
        lines.append(f"| {row.model} | {row.config} | {' | '.join(map(str, counts))} |")
        classes.update(row.classes)
        sums.update(dict(enumerate(counts)))
    lines.append(f"| {len({row.model for row in rows})} models | | {' | '.join(str(sums[i]) for i in range(6))} |")
    lines += ["", "| class: row of docs/compatibility.md | count |", "|---|---|"]
    lines += [f"| {name} | {count} |" for name, count in classes.most_common()]
    return "\n".join(lines) + "\n"


def main():
    python, *models = sys.argv[1:]
    models = models or [*FAMILIES, *ARCHITECTURES]
    with tempfile.TemporaryDirectory() as scratch:
        captures = both_tools(Path(python).absolute(), models, Path(scratch))
        try:
            for model in models:
                for level in levels_of(model):
                    for line in captures.compare(model, level):
                        print(f"{model} {level}: {line}", file=sys.stderr)
        finally:
            captures.stop()
    text = table(captures.rows)
    (REPO / "out").mkdir(exist_ok=True)
    (REPO / "out" / "architectures.md").write_text(text)
    print(text)
    return any(row.differences for row in captures.rows)


if __name__ == "__main__":
    sys.exit(main())

"""Writes the figures in README.md and README.zh.md from docs/performance.md, which `make bench` makes.

python tools/readme_figures.py          # writes both
python tools/readme_figures.py --check  # fails when they do not agree
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures: tools/readme_figures.py -->\n", "<!-- figures: end -->"
STEP, COMPARE, GRAPHS = "A training step under capture", "Comparing", "Graphs"

# Section of performance.md, the first cells of the row there, and the row's name in each language.
STEPS = (
    (("small", "L0", "statistics"), "LLaMA, level `L0`, statistics", "LLaMA，级别 `L0`，统计量"),
    (("small", "mix", "statistics"), "LLaMA, `mix`, statistics", "LLaMA，`mix`，统计量"),
    (("small", "mix", "md5"), "LLaMA, `mix`, checksums too", "LLaMA，`mix`，含校验和"),
    (("small", "mix", "tensor files on disk"), "LLaMA, `mix`, tensor files", "LLaMA，`mix`，张量文件"),
    (("resnet18", "mix", "statistics"), "ResNet-18, `mix`, statistics", "ResNet-18，`mix`，统计量"),
    (("tiny", "mix", "statistics"), "`tiny`, `mix`, statistics", "`tiny`，`mix`，统计量"),
)
COMMANDS = (
    (COMPARE, "statistics, 100,000 nodes", "compare, 100,000 nodes", "比对，10 万节点"),
    (COMPARE, "tensor files, 2 x", "compare, tensor files, 2 x 1.43 GB", "比对张量文件，2 x 1.43 GB"),
    (COMPARE, "8 ranks of 20,000 nodes", "compare, 8 ranks of 20,000 nodes", "比对，8 个 rank，各 2 万节点"),
    (
        GRAPHS,
        "compare, 100,000 nodes a side",
        "graph of two runs, 100,000 nodes a side",
        "两次运行的图，每侧 10 万节点",
    ),
)
HEAD = "| | msprobe | mindstudio-probe 26.2.0 |"


def row(text, section, begins):
    """The cells of the one row of a section whose first cells begin with these."""
    body = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    rows = [
        [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        for line in body.splitlines()
        if line[:1] == "|"
    ]
    found = [cells for cells in rows if all(cell.startswith(begin) for cell, begin in zip(cells, begins))]
    if len(found) != 1:
        sys.exit(f"docs/performance.md, '{section}': {len(found)} rows begin with {begins}; one was expected")
    return found[0]


def table(text, language):
    """The table of one language."""
    which = {"en": 1, "zh": 2}[language]
    step, times = {"en": ("a step, {}", "{} times"), "zh": ("一步，{}", "{} 倍")}[language]
    lines = [HEAD, "|---|--:|--:|"]
    for entry in STEPS:
        ours, theirs = row(text, STEP, entry[0])[3:5]
        lines.append(f"| {step.format(entry[which])} | {times.format(ours)} | {times.format(theirs)} |")
    for section, begin, *names in COMMANDS:
        cells = row(text, section, (begin,))
        # Time and peak memory: of ours, then of the other tool.
        ours, theirs = ((1, 4), (2, 5)) if section == COMPARE else ((1, 2), (4, 5))
        values = [f"{cells[ours[0]]}, {cells[ours[1]]}", f"{cells[theirs[0]]}, {cells[theirs[1]]}"]
        lines.append(f"| {names[which - 1]} | {values[0]} | {values[1]} |")
    return "\n".join(lines) + "\n"


def written(path, text, language):
    """The text of a README with the figures of `text` in it."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{path}: the lines '{BEGIN.strip()}' and '{END}' are missing")
    return before + BEGIN + table(text, language) + END + after


def main():
    text = (ROOT / "docs" / "performance.md").read_text()
    stale = []
    for name, language in (("README.md", "en"), ("README.zh.md", "zh")):
        path = ROOT / name
        wanted = written(path, text, language)
        if path.read_text() == wanted:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(wanted)
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: not the figures of docs/performance.md; run python tools/readme_figures.py")


if __name__ == "__main__":
    main()

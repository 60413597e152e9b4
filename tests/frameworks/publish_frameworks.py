"""Records and compares all networks and planted bugs; with --write, docs/{en,zh}/compare/frameworks.md.

.venv/bin/python tests/frameworks/publish_frameworks.py --write
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from runs import (
    BUGS,
    FRAMEWORKS,
    FUSED,
    HELD_OUT,
    HERE,
    LATER,
    NETWORKS,
    OTHER,
    REPO,
    WAYS,
    bug_result,
    clean_result,
    dump_of,
    record,
)

WORDS = {"en": ("yes", "**no**", "nothing"), "zh": ("是", "**否**", "无")}


def clean_row(root, mindspore, pytorch):
    """A pair of networks over both directions and all ways to record it: the least share of each."""
    results = []
    for level, task in WAYS:
        for target in FRAMEWORKS:
            sides = {"mindspore": mindspore, "pytorch": pytorch}
            paths = {side: dump_of(root, side, network, level, task) for side, network in sides.items()}
            out = root / "compared" / f"{mindspore}_{pytorch}_{level}_{task}_{target}"
            results.append((level, clean_result(paths[target], paths[OTHER[target]], out)))
    equal = min(r.equal / r.pairs for _, r in results)
    paired = min(r.paired / r.computing for level, r in results if level == "mix")
    every = min(r.every for level, r in results if level == "mix")
    pairs = max(r.pairs for _, r in results)
    name = mindspore if mindspore == pytorch else f"{mindspore} / {pytorch}"
    bugs, doubted = sum(r.bugs for _, r in results), sum(r.suspicious for _, r in results)
    return bugs, f"| {name} | {pairs} | {equal:.1%} | {paired:.1%} | {every:.1%} | {bugs} | {doubted} |"


def bug_row(bug, result, words):
    yes, no, nothing = words
    said = f"`{result.op}` ({result.kind})" if result.op else nothing
    return f"| {bug.name} | {bug.network} | {bug.about} | `{bug.where[0]}` | {said} | {yes if result.right else no} |"


def measure(root, mindspore_python):
    record(root, mindspore_python)
    with ThreadPoolExecutor(2) as pool:
        clean = list(pool.map(lambda pair: clean_row(root, *pair), [*((n, n) for n in NETWORKS), *FUSED]))
        every = (*BUGS, *HELD_OUT, *LATER)
        results = list(pool.map(lambda bug: bug_result(root, bug, root / "compared" / bug.name), every))
    found = {"clean": "\n".join(row for _, row in clean), "called": sum(bugs for bugs, _ in clean)}
    for name, bugs in (("bugs", BUGS), ("held_out", HELD_OUT), ("later", LATER)):
        chosen = [(bug, result) for bug, result in zip(every, results) if bug in bugs]
        found |= {f"{name}_all": len(chosen), f"{name}_right": sum(result.right for _, result in chosen)}
        for language, words in WORDS.items():
            found[f"{name}_{language}"] = "\n".join(bug_row(bug, result, words) for bug, result in chosen)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the two pages")
    parser.add_argument("--mindspore", default=REPO / ".venv-ms" / "bin" / "python", help="python with MindSpore")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(Path(scratch), args.mindspore)
    for language in WORDS:
        own = {name: found[f"{name}_{language}"] for name in ("bugs", "held_out", "later")}
        text = (HERE / f"page.{language}.txt").read_text(encoding="utf-8").format(**found, **own)
        if language == "en":
            print(text)
        if args.write:
            (REPO / "docs" / language / "compare" / "frameworks.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

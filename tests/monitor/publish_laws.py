"""Runs all cases of laws, each with and without its bug, and the healthy trainings; the tables of docs/*/monitor/laws.md.

python publish_laws.py [--write]
"""

import gc
import json
import sys
import time
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import law_bugs
import law_bugs_apart
import law_clean
import law_runs
import law_trainers
from published import replaced

ROOT = Path(__file__).resolve().parents[2]
HEADS = {
    "en": ("bug", "in", "from", "law", "says it", "alarms without the bug"),
    "zh": ("错误", "场景", "来源", "定律", "是否报告", "无此错误时的误报"),
}
CLEAN_HEADS = {"en": ("training", "with", "laws looked at", "alarms"), "zh": ("训练", "方式", "检查的定律数", "误报")}
RATE_HEADS = {"en": ("law", "looks in healthy trainings", "alarms"), "zh": ("定律", "健康训练中的检查次数", "误报")}
WORDS = {"en": ("apart", "yes", "no"), "zh": ("单独留出", "是", "否")}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def look(case, wrong, looks):
    """What broke; adds to `looks` what was looked at in a healthy training."""
    broken, looked = law_runs.run_case(case, wrong)
    gc.collect()
    if not wrong:
        for name, count in looked.items():
            looks[name][0] += count
            looks[name][1] += name in broken
    return broken, looked


def main():
    torch.set_num_threads(1)
    assert law_bugs_apart.FIRST_SIGHT
    looks = {name: [0, 0] for name in law_runs.laws()}
    bugs, clean, started = [], [], time.process_time()
    for case in [*law_bugs.CASES, *law_trainers.TRAINERS]:
        wrong, _ = look(case, True, looks)
        right, _ = look(case, False, looks)
        said = sorted(set(wrong) & set(case.laws))
        bugs.append((case, said, right))
        print(
            ("told  " if said else "MISSED"),
            case.name,
            "".join(f"; {name}: {text}" for name, text in wrong.items())[:300],
        )
        if right:
            print("  ALARM without the bug", json.dumps(right))
    for case in [*law_clean.CLEAN, *law_clean.LAYOUTS]:
        broken, looked = look(case, False, looks)
        clean.append((case, len(looked), broken))
        print("clean", case.name, len(looked), "laws", json.dumps(broken) if broken else "")
    apart = Counter((case.apart, bool(said)) for case, said, _ in bugs)
    print(
        f"told {sum(bool(s) for _, s, _ in bugs)} of {len(bugs)}; apart {apart[True, True]} of {apart[True, True] + apart[True, False]}"
    )
    print(
        f"alarms: {sum(bool(b) for *_, b in clean)} of {len(clean)} healthy trainings, {sum(bool(r) for *_, r in bugs)} of {len(bugs)} twins"
    )
    print(f"{time.process_time() - started:.0f} s of processor, without the ranks of several")
    if "--write" in sys.argv:
        for language in HEADS:
            write(language, bugs, clean, looks)


def write(language, bugs, clean, looks):
    path = ROOT / "docs" / language / "monitor" / "laws.md"
    separate, yes, no = WORDS[language]
    rows = []
    for case, said, right in bugs:
        text = case.function.__doc__.strip()
        where = case.idiom + (
            f", {case.ranks} ranks"
            if language == "en" and case.ranks > 1
            else f"，{case.ranks} 个 rank"
            if case.ranks > 1
            else ""
        )
        mark = f" ({separate})" if case.apart else ""
        rows.append(
            (
                text + mark,
                where,
                case.source,
                ", ".join(f"`{law}`" for law in (said or case.laws)),
                yes if said else no,
                len(right),
            )
        )
    body = path.read_text(encoding="utf-8")
    body = replaced(body, "laws: planted", table(HEADS[language], rows))
    rows = [(case.name, case.idiom, count, len(broken)) for case, count, broken in clean]
    body = replaced(body, "laws: healthy", table(CLEAN_HEADS[language], rows))
    rows = [(f"`{name}`", *counts) for name, counts in looks.items()]
    path.write_text(replaced(body, "laws: rates", table(RATE_HEADS[language], rows)), encoding="utf-8")


if __name__ == "__main__":
    main()

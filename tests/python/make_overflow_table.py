#!/usr/bin/env python3
"""Writes the table of planted runs, both tools' answers, into docs/{en,zh}/compare/overflow.md.

`make_overflow_table.py OLD_PYTHON`; a golden set (MSPROBE_GOLDEN) adds its cases.
"""

import json
import sys
import tempfile
from pathlib import Path

from graph_cases import golden_set
from launch import HERE, REPO, run_python
from overflow_runs import RUNS, TRUTH
from test_overflow_planted import capture, named, report_of

BEGIN, END = "<!-- planted runs: made by tests/python/make_overflow_table.py -->", "<!-- end -->"
SEEDS = ["0", "1", "2"]
# Of the golden set: what was planted.
GOLDEN = {
    "m1_mix_stat/nan": [(0, "Module.model.layers.1.mlp.down_proj.Linear.forward.0")],
    "tp_mix_stat/bench": [],
    "tp_mix_stat/nan": [(1, "Module.module.decoder.layers.2.mlp.linear_fc1.ColumnParallelLinear.forward.0")],
    "tp_mix_stat/bwdnan": [(1, "Tensor.__mul__.0.forward")],
    "tp_mix_stat/commnan": [(0, "Distributed.all_reduce.6.forward"), (1, "Distributed.all_reduce.6.forward")],
    "pp2_sr/nan": [(0, "Module.0.module.decoder.layers.1.mlp.linear_fc1.ColumnParallelLinear.forward.0")],
    "tp2dp2/nan": [(2, "Module.0.module.decoder.layers.1.mlp.linear_fc1.ColumnParallelLinear.forward.0")],
}


def old_answers(python, dump, work):
    out = work / "old.json"
    run_python([HERE / "overflow_old_answers.py", dump, out, *SEEDS], python=python, ours=False)
    answers = json.loads(out.read_text())
    return {step: [answers[seed][step] for seed in SEEDS] for step in answers[SEEDS[0]]}


def old_named(answer):
    if isinstance(answer, str):
        return answer
    return sorted((int(rank[5:]), op) for rank, ops in answer.items() for op in ops)


def is_right(got, truth):
    if isinstance(got, str):
        return False
    ranks, ops = [rank for rank, _ in truth], [op for _, op in truth]
    return [rank for rank, _ in got] == ranks and all(name.startswith(op) for (_, name), op in zip(got, ops))


def shown(got):
    if isinstance(got, str):
        return f"ends with {got}"
    return "<br>".join(f"{rank}: `{op}`" for rank, op in got) or "nothing"


def row(name, truth, ours, old):
    old = [old_named(answer) for answer in old]
    texts = list(dict.fromkeys(shown(got) for got in old))
    judged = ["right" if is_right(got, truth) else "**wrong**" for got in old]
    verdict = judged[0] if len(set(judged)) == 1 and len(texts) == 1 else "**by chance**"
    ours_verdict = "right" if is_right(ours, truth) else "**wrong**"
    return f"| {name} | {shown(truth)} | {ours_verdict} | {verdict} | {' or '.join(texts)} |", ours_verdict, verdict


def main():
    python = Path(sys.argv[1])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for world, truths in TRUTH.items():
            steps = capture(work / str(world), world, list(truths))
            old = old_answers(python, work / str(world) / "dump", work)
            for name, step in steps.items():
                truth = [(rank, truths[name].op) for rank in truths[name].ranks]
                text = f"{world} ranks: {RUNS[name].__name__.replace('_', ' ')}"
                rows.append(row(text, truth, named(report_of(step, work / "out")), old[step.name]))
        for path, truth in GOLDEN.items():
            dump = golden_set() / "data" / path
            rows.append(
                row(
                    f"golden set: {path}",
                    truth,
                    named(report_of(dump / "step0", work / "out")),
                    old_answers(python, dump, work)["step0"],
                )
            )
    right = sum(ours == "right" for _, ours, _ in rows)
    old_right = sum(old == "right" for _, _, old in rows)
    text = "\n".join(
        [
            f"msprobe: {right} of {len(rows)} right. mindstudio-probe 26.2.0: {old_right} of {len(rows)}.",
            "",
            "| run | truth (rank: op) | msprobe | mindstudio-probe | which named |",
            "|---|---|---|---|---|",
            *[line for line, _, _ in rows],
        ]
    )
    for language in ("en", "zh"):
        page = REPO / "docs" / language / "compare" / "overflow.md"
        before, rest = page.read_text().split(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    print(text.splitlines()[0])


if __name__ == "__main__":
    main()

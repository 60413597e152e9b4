"""Runs the suite with both tools and several seeds and prints the tables; with --write, docs/{en,zh}/compare/sabotage.md.

.venv/bin/python tests/sabotage/publish.py --write
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from launch import REPO, run_python
from make_dumps import SETS, sets
from score import Answer, is_right, results_of

HERE = Path(__file__).resolve().parent
SEEDS = (1, 2, 3)
OLD_PYTHON = Path(os.environ.get("MSPROBE_OLD_PYTHON", REPO / ".venv-old" / "bin" / "python"))


def dumps_of(seed, root):
    if root.exists():
        return
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    run_python([HERE / "make_dumps.py", root, "--seed", seed], env=environment, timeout=900)


def old_answers(root):
    """{case: [Answer]}, of the earlier tool."""
    out = root.with_suffix(".json")
    if out.exists():
        return read_old(out)
    environment = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    subprocess.run([OLD_PYTHON, HERE / "old_answers.py", root, out], env=environment, check=True, capture_output=True)
    return read_old(out)


def read_old(out):
    found = {}
    for name, said in json.loads(out.read_text()).items():
        found[name] = [Answer(op, rank, "op") for rank, op in said.get("answers", [])]
    return found


def named(answer, ranks):
    if not answer.op:
        return "-"
    op = f"`{answer.op}`" + (f", inside `{answer.inside}`" if answer.inside else "")
    return f"rank {answer.rank}: {op}" if ranks > 1 else op


def kind(answer):
    verdict = answer.verdict if answer.verdict not in ("", "N/A") else ""
    return ", ".join(filter(None, (answer.kind, verdict))) + ": " if answer.op else ""


def mark(right):
    return "+" if right else "-"


def bug_table(cases, results, old):
    """(rows, right answers of ours, of the earlier tool)"""
    rows, ours, theirs = [], 0, 0
    for case in cases:
        result = results[case.name]
        said = old[case.name]
        old_right = any(is_right(result.truth, answer) for answer in said)  # one right one of several is enough
        ours, theirs = ours + result.right, theirs + old_right
        place = f"`{case.where[0]}`" + (f", rank {case.ranks[0]}" if case.ranks else "")
        task = case.summary if case.summary != "statistics" else case.task
        rows.append(
            f"| {case.name} | {case.about} | {case.level}, {task} | {place} "
            f"| {kind(result.answer)}{named(result.answer, case.world)} | {mark(result.right)} "
            f"| {'; '.join(named(a, case.world) for a in said[:2]) or '-'} | {mark(old_right)} |"
        )
    return rows, ours, theirs


def clean_table(cases, results):
    rows, false = [], 0
    for case in cases:
        answer = results[case.name].answer
        false += answer.verdict == "bug"
        says = kind(answer) + named(answer, case.world) if answer.op else "no difference"
        rows.append(f"| {case.name} | {case.about} | {says} | {mark(answer.verdict != 'bug')} |")
    return rows, false


def measure(root):
    """The numbers and rows that the pages show."""
    cases, by_seed = sets(), {}
    for seed in SEEDS:
        dumps_of(seed, root / str(seed))
        by_seed[seed] = {name: results_of(root / str(seed) / name) for name in cases}
    first = by_seed[SEEDS[0]]
    found = {"seeds": len(SEEDS)}
    for name in SETS[:-1]:
        old = old_answers(root / str(SEEDS[0]) / name)
        rows, ours, theirs = bug_table(cases[name], first[name], old)
        found[name] = "\n".join(rows)
        found.update({f"{name}_all": len(rows), f"{name}_ours": ours, f"{name}_old": theirs})
        found[f"{name}_world"] = sum(case.world > 1 for case in cases[name])
        found[f"{name}_seeds"] = ", ".join(str(sum(r.right for r in by_seed[s][name].values())) for s in SEEDS)
    rows, false = clean_table(cases["clean"], first["clean"])
    found.update(clean="\n".join(rows), clean_all=len(rows), clean_false=false)
    found["clean_seeds"] = ", ".join(
        str(sum(r.answer.verdict == "bug" for r in by_seed[s]["clean"].values())) for s in SEEDS
    )
    return found


ENGLISH = """# Planted bugs: does the first difference name the place?

Small models with random weights are trained for one step with and without one planted bug, both runs are captured, and
`msprobe compare` says where they begin to differ. The answer is checked against what was written down with the bug: the op that makes the
first wrong number, or the module that calls it, in the right direction and on the right rank. Beside it is the answer of `compare -da`
of mindstudio-probe 26.2.0 on the same dumps, checked against the same truth; where it names several
ops, one correct op is enough.

The kinds are those of `first_divergence.json`: `parameter` is the cause `weight` of the [verdict](verdict.md), `input` with
`inside` its cause `code`.

Made by `.venv/bin/python tests/sabotage/publish.py --write`; `tests/sabotage` holds models, bugs and truth, and runs in
`make test`.

| | cases | several processes | msprobe | over {seeds} seeds | mindstudio-probe |
|---|---|---|---|---|---|
| planted bugs | {bugs_all} | {bugs_world} | **{bugs_ours}** | {bugs_seeds} | {bugs_old} |
| bugs in bfloat16 against float32 | {noisy_all} | {noisy_world} | **{noisy_ours}** | {noisy_seeds} | {noisy_old} |
| bugs in dumps of modules only | {modules_all} | {modules_world} | **{modules_ours}** | {modules_seeds} | {modules_old} |
| bugs held out, which no rule was tuned to | {held_out_all} | {held_out_world} | **{held_out_ours}** | {held_out_seeds} | {held_out_old} |

| | pairs | called a bug | over {seeds} seeds |
|---|---|---|---|
| pairs without a bug | {clean_all} | **{clean_false}** | {clean_seeds} |

## Planted bugs

The place is the first of the accepted ones: `module/api` is a function that the module calls, `#3` its call number.

| case | what is wrong | level, task | where | msprobe | right | mindstudio-probe | right |
|---|---|---|---|---|---|---|---|
{bugs}

## Bugs in bfloat16, compared with float32

Every op differs by rounding, one by more.

| case | what is wrong | level, task | where | msprobe | right | mindstudio-probe | right |
|---|---|---|---|---|---|---|---|
{noisy}

## Bugs in dumps of modules only

Where the wrong code is between two modules, the second one receives the difference; the answer also names the module around
both, and that is what counts.

| case | what is wrong | level, task | where | msprobe | right | mindstudio-probe | right |
|---|---|---|---|---|---|---|---|
{modules}

## Held-out bugs

| case | what is wrong | level, task | where | msprobe | right | mindstudio-probe | right |
|---|---|---|---|---|---|---|---|
{held_out}

## Pairs without a bug

Two runs that differ by no more than rounding, or in how they compute the same. Every answer whose verdict is not
*bug* is right: a difference may be named, and its kind says what it is.

| pair | what differs | msprobe | right |
|---|---|---|---|
{clean}

## What the truth leaves out

Slices, views, casts and `arange` are not recorded, here as in mindstudio-probe. Where the bug is in one of them, or in an op
that is not called at all, the op that takes the result first counts as right. Which ops count in each case is in
`tests/sabotage/bugs.py` and `held_out.py`. One truth was completed after its first run: that of `gradient_in_half` had left
out the multiplications of the planted code itself.
"""

CHINESE = """# 植入的错误：首个差异能否指出位置？

随机权重的小模型训练一步，一次带有一个植入的错误，一次没有；两次都采集，由 `msprobe compare` 指出两者从哪里分开。答案与植入时写下的
事实对照：产生第一个错误数值的算子，或调用它的模块，方向与 rank 都要正确。旁边是 mindstudio-probe 26.2.0 的 `compare -da`
对同样数据的答案，用同样的事实判断；它给出多个算子时，有一个正确即可。

种类与 `first_divergence.json` 相同：`parameter` 即[结论](verdict.md)中的原因 `weight`，带 `inside` 的 `input` 即原因 `code`。

由 `.venv/bin/python tests/sabotage/publish.py --write` 生成；模型、错误与事实在 `tests/sabotage`，并在 `make test` 中运行。

| | 用例 | 多进程 | msprobe | {seeds} 个种子 | mindstudio-probe |
|---|---|---|---|---|---|
| 植入的错误 | {bugs_all} | {bugs_world} | **{bugs_ours}** | {bugs_seeds} | {bugs_old} |
| bfloat16 对 float32 中的错误 | {noisy_all} | {noisy_world} | **{noisy_ours}** | {noisy_seeds} | {noisy_old} |
| 只有模块的数据中的错误 | {modules_all} | {modules_world} | **{modules_ours}** | {modules_seeds} | {modules_old} |
| 保留的错误，没有规则针对它们调整 | {held_out_all} | {held_out_world} | **{held_out_ours}** | {held_out_seeds} | {held_out_old} |

| | 数据对 | 被称为错误 | {seeds} 个种子 |
|---|---|---|---|
| 没有错误的数据对 | {clean_all} | **{clean_false}** | {clean_seeds} |

## 植入的错误

位置是可接受位置中的第一个：`module/api` 是该模块调用的 api，`#3` 是调用序号。

| 用例 | 错误 | 级别，任务 | 位置 | msprobe | 正确 | mindstudio-probe | 正确 |
|---|---|---|---|---|---|---|---|
{bugs}

## bfloat16 与 float32 比较中的错误

每个算子都因舍入而不同，其中一个的差异超出舍入。

| 用例 | 错误 | 级别，任务 | 位置 | msprobe | 正确 | mindstudio-probe | 正确 |
|---|---|---|---|---|---|---|---|
{noisy}

## 只有模块的数据中的错误

错误代码在两个模块之间时，后一个模块收到差异；答案同时指出包含两者的模块，以此为准。

| 用例 | 错误 | 级别，任务 | 位置 | msprobe | 正确 | mindstudio-probe | 正确 |
|---|---|---|---|---|---|---|---|
{modules}

## 保留的错误

| 用例 | 错误 | 级别，任务 | 位置 | msprobe | 正确 | mindstudio-probe | 正确 |
|---|---|---|---|---|---|---|---|
{held_out}

## 没有错误的数据对

两次运行的差异不超过舍入，或只是计算同一结果的方式不同。判定不是 *bug* 的答案都正确：可以指出差异，其种类说明它是什么。

| 数据对 | 差异 | msprobe | 正确 |
|---|---|---|---|
{clean}

## 事实不包含什么

切片、视图、类型转换与 `arange` 不被采集，与 mindstudio-probe 相同。错误在其中，或在没有被调用的算子中时，最先使用其结果的算子算作正确。
每个用例接受哪些算子，见 `tests/sabotage/bugs.py` 与 `held_out.py`。其中一个事实在首次运行后补全：`gradient_in_half` 起初漏掉了植入代码自身的乘法。
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the two pages")
    parser.add_argument("--keep", type=Path, help="leave the dumps here; those of an earlier run are taken as they are")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(args.keep or Path(scratch))
    print(ENGLISH.format(**found))
    if args.write:
        for language, text in (("en", ENGLISH), ("zh", CHINESE)):
            page = REPO / "docs" / language / "compare" / "sabotage.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text.format(**found), encoding="utf-8")


if __name__ == "__main__":
    main()

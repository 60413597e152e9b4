"""Trains both sides of cases and leaves their dumps: `make_dumps.py OUT [--sets bugs ...] [--only NAME ...] [--seed N]`.

OUT/SET/CASE/{target,golden}/step0/rank*/dump.json and, for planted bugs, OUT/SET/CASE/truth.json. Each side runs in a child, forked
after the imports, which take longer than the training; those of several processes meet over gloo.
"""

import argparse
import contextlib
import gc
import json
import os
import random
import shutil
import sys
from pathlib import Path

import torch
import torch.nn
from case import write_truth
from forked import fork

JOBS = 2
SETS = ("bugs", "noisy", "modules", "held_out", "clean")
FORM_SETS = ("forms", "forms_of_statistics")  # faults of a known form; anatomy.py
LAYOUT_SETS = ("layouts",)  # the same run twice on every layout; layout_pairs.py
OTHER_WAYS = ("rewrites", "rounding", "on_top")  # runs that compute the same in another way, with and without a bug


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def configuration(case, dump):
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": case.summary}
    return {"task": case.task, "level": case.level, "rank": [], "step": [], "dump_path": str(dump), case.task: section}


def train(case, change, make, out, rank, seed):
    if case.world > 1:
        store = torch.distributed.FileStore(str(out / "store"), case.world)
        torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=case.world)
    from msprobe.pytorch import PrecisionDebugger

    config = out / f"config{rank}.json"
    config.write_text(json.dumps(configuration(case, out)))
    debugger = PrecisionDebugger(config_path=str(config))
    seed_all(seed)
    work = make() if case.world == 1 else make(rank, case.world)
    if change:
        change(*([work] if case.world == 1 else [work, rank]))
    seed_all(seed)
    work.before()
    for _ in range(work.steps):
        debugger.start(model=work.model)
        work.step()
        debugger.stop()
        debugger.step()
    if case.world > 1:
        torch.distributed.destroy_process_group()


def build(cases, seed):
    """Both sides of all cases, {directory: case}, some at a time. Returns the logs of those that failed."""
    waiting = []
    for root, case in cases.items():
        shutil.rmtree(root, ignore_errors=True)
        for side in ("target", "golden"):
            (root / side).mkdir(parents=True)
            waiting.append((case, side, root / side))
    running, failed = {}, []
    while waiting or running:
        while waiting and len(running) < JOBS:
            case, side, out = waiting.pop(0)
            change, make = case.side(side)
            for rank in range(case.world):
                log = out / f"log{rank}.txt"
                running[fork(train, case, change, make, out, rank, seed, log=log)] = log
        pid, status = os.wait()
        log = running.pop(pid)
        if status:
            failed.append(log)
    return failed


def imports():
    """Ahead of the children."""
    import msprobe.pytorch  # noqa: F401
    import torch.distributed  # noqa: F401
    import transformers.models.bert.modeling_bert
    import transformers.models.gpt2.modeling_gpt2
    import transformers.models.llama.modeling_llama
    import transformers.models.t5.modeling_t5
    import transformers.models.vit.modeling_vit  # noqa: F401


def sets():
    from bugs import BUGS
    from clean import CLEAN
    from held_out import HELD_OUT
    from variants import MODULES, NOISY

    return {"bugs": BUGS, "noisy": NOISY, "modules": MODULES, "held_out": HELD_OUT, "clean": CLEAN}


def form_sets():
    from anatomy import FORMS, STATISTICS_FORMS

    return dict(zip(FORM_SETS, (FORMS, STATISTICS_FORMS)))


def other_ways():
    from on_top import ON_TOP
    from other_models import OTHER_BUGS, OTHER_REWRITES, OTHER_ROUNDING
    from rewrites import REWRITES
    from rounding import ROUNDING

    return dict(zip(OTHER_WAYS, (REWRITES + OTHER_REWRITES, ROUNDING + OTHER_ROUNDING, ON_TOP + OTHER_BUGS)))


def layout_sets():
    from layout_pairs import LAYOUTS

    return dict(zip(LAYOUT_SETS, (LAYOUTS,)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    imports()
    cases = {}
    for name, members in {**sets(), **form_sets(), **other_ways(), **layout_sets()}.items():
        for case in members:
            if name in args.sets and (not args.only or case.name in args.only):
                cases[args.out.resolve() / name / case.name] = case
    gc.freeze()  # children share these pages as long as nobody counts in them
    failed = build(cases, args.seed)
    for log in failed:
        print(f"{log}:\n{log.read_text()[-1500:]}", file=sys.stderr)
    if failed:
        return 1
    for root, case in cases.items():
        if hasattr(case, "where"):
            write_truth(case, root)
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())

"""Trains both sides of cases and leaves their dumps: `make_dumps.py OUT [--sets bugs ...] [--only NAME ...] [--seed N]`.

OUT/SET/CASE/{target,golden}/step0/rank*/dump.json and, for planted bugs, OUT/SET/CASE/truth.json. Each side runs in a child, forked
after the imports, which take longer than the training; those of several processes meet over gloo.
"""

import argparse
import contextlib
import gc
import hashlib
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
KEPT = []  # until the child ends
SETS = ("bugs", "noisy", "modules", "held_out", "clean")
FORM_SETS = ("forms", "forms_of_statistics")  # faults of a known form; anatomy.py
LAYOUT_SETS = ("layouts", "uncaptured", "layout_bugs")  # layout_pairs.py, layout_bugs.py
OTHER_WAYS = ("rewrites", "rounding", "on_top")  # runs that compute the same in another way, with and without a bug


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def configuration(case, dump):
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": case.summary}
    return {
        "task": case.task,
        "level": case.level.replace("none", "mix"),
        "rank": [],
        "step": [],
        "dump_path": str(dump),
        case.task: section,
    }


def noting_losses(work):
    losses, loss = getattr(work, "losses", []), work.loss

    def noted(*args):
        losses.append(loss(*args))
        return losses[-1]

    if loss is not None:
        work.loss = noted
    return losses


def bits_of(work, losses):
    """What a training leaves, bit by bit: losses, gradients, parameters, the state of the random generator."""
    values = {"losses": losses, "random": [torch.get_rng_state()], "parameters": [], "gradients": []}
    for parameter in work.model.parameters():
        for kind, tensor in (("parameters", parameter), ("gradients", parameter.grad)):
            if tensor is not None:
                values[kind].append(getattr(tensor, "_local_tensor", tensor))
    raw = {
        kind: [t.detach().contiguous().view(torch.uint8).numpy() for t in map(flat, list_)]
        for kind, list_ in values.items()
    }
    return {kind: hashlib.sha256(b"".join(t.tobytes() for t in list_)).hexdigest() for kind, list_ in raw.items()}


def flat(tensor):
    return tensor.detach().reshape(-1)


def train(case, side, out, rank, seed):
    change, make = case.side(side)
    captured = side == "golden" or case.level != "none"
    if case.world > 1:
        store = torch.distributed.FileStore(str(out / "store"), case.world)
        torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=case.world)
    from msprobe.pytorch import PrecisionDebugger

    if not captured:
        PrecisionDebugger = Nothing
    config = out / f"config{rank}.json"
    config.write_text(json.dumps(configuration(case, out)))
    debugger = PrecisionDebugger(config_path=str(config))
    seed_all(seed)
    work = make() if case.world == 1 else make(rank, case.world)
    if change:
        change(*([work] if case.world == 1 else [work, rank]))
    seed_all(seed)
    work.before()
    losses = noting_losses(work) if case.world > 1 else []
    for _ in range(work.steps):
        debugger.start(model=work.model)
        work.step()
        debugger.stop()
        debugger.step()
    if case.world > 1:
        (out / f"bits{rank}.json").write_text(json.dumps(bits_of(work, losses)))
        # Taken apart while the interpreter is held, a group of gloo waits for its thread, which waits for the interpreter.
        KEPT.extend((work, torch.distributed.group.WORLD))
        torch.distributed.destroy_process_group()


class Nothing:
    """In the place of the debugger where nothing is captured."""

    def __init__(self, **arguments):
        pass

    def start(self, **arguments):
        pass

    stop = step = start


def recorded(case):
    """Cases of which this is the same have the same golden run."""
    return case.side("golden")[1], case.level.replace("none", "mix"), case.task, case.summary


def build(cases, seed):
    """Both sides of all cases, {directory: case}, some at a time. Returns the logs of those that failed."""
    waiting, goldens = [], {}
    for root, case in cases.items():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        shared = goldens.setdefault(recorded(case), root / "golden") if case.world > 1 else root / "golden"
        for side in ("target", "golden"):
            if side == "golden" and shared != root / "golden":
                (root / side).symlink_to(shared)
                continue
            (root / side).mkdir(parents=True)
            waiting.append((case, side, root / side))
    running, failed = {}, []
    while waiting or running:
        while waiting and len(running) < JOBS:
            case, side, out = waiting.pop(0)
            for rank in range(case.world):
                log = out / f"log{rank}.txt"
                running[fork(train, case, side, out, rank, seed, log=log)] = log
        pid, status = os.wait()
        log = running.pop(pid)
        if status:
            failed.append(log)
    return failed


def imports(cases):
    """Ahead of the children."""
    if any("compiled" in case.name for case in cases):
        import torch._inductor.compile_fx  # which takes as long as the rest of such a child
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
    from layout_bugs import LAYOUT_BUGS
    from layout_pairs import LAYOUTS, UNCAPTURED

    return dict(zip(LAYOUT_SETS, (LAYOUTS, UNCAPTURED, LAYOUT_BUGS)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    cases = {}
    for name, members in {**sets(), **form_sets(), **other_ways(), **layout_sets()}.items():
        for case in members:
            if name in args.sets and (not args.only or case.name in args.only):
                cases[args.out.resolve() / name / case.name] = case
    imports(cases.values())
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

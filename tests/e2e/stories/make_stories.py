"""The runs of stories.test.mjs: `make_stories.py OUT [--only NAME ...]`.

OUT/NAME/{target,golden}/step*/... and OUT/stories.json: of each story where its runs are and what is true of it. The three of the
demo share a golden run. Each side of the trained ones runs in a child, forked after the imports, which take longer than the training.
"""

import argparse
import gc
import json
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sabotage"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "quickstart"))

import torch
import train
from forked import fork
from make_dumps import build
from story import Story, Truth
from trained import TRAINED
from written import WRITTEN

BROKEN = "model.layers.2.mlp"  # of train.py
DEMO = (
    Story(
        "demo_weight",
        "single",
        "the demo: a weight of layer 2 is scaled by 1.25",
        Truth("weight", "Functional.linear.20.forward", "input.1", f"{BROKEN}.down_proj", parameter="weight"),
    ),
    Story(
        "demo_rope",
        "single",
        "the demo: positions are rotated with another base",
        Truth("buffer", "Tensor.__mul__.0.forward", "input.1", "model.rotary_emb", parameter="inv_freq"),
    ),
    Story(
        "demo_bf16",
        "single",
        "the demo: the MLP of layer 2 computes in bfloat16",
        Truth("dtype", "Functional.linear.18.forward", "input.0", f"{BROKEN}.gate_proj"),
    ),
)


def run_demo(dump, sabotage):
    sys.argv = ["train.py", "--dump", str(dump), "--sabotage", sabotage, "--steps", "1"]
    train.main()


def make_demos(out, names):
    """{name: (target, golden)}"""
    runs = {name: out / name / "target" for name in names}
    golden = out / "demo_golden"
    waiting = {}
    for name, dump in {**runs, "demo_none": golden}.items() if runs else ():
        shutil.rmtree(dump, ignore_errors=True)
        dump.mkdir(parents=True)
        log = dump / "log.txt"
        waiting[fork(run_demo, dump, name.removeprefix("demo_"), log=log)] = log
    failed = []
    while waiting:
        pid, status = os.wait()
        log = waiting.pop(pid)
        if status:
            failed.append(log)
    return {name: (dump, golden) for name, dump in runs.items()}, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    gc.freeze()  # children share these pages as long as nobody counts in them

    def wanted(story):
        return not args.only or story.name in args.only

    demos = [story for story in DEMO if wanted(story)]
    trained = [(story, case) for story, case in TRAINED if wanted(story)]
    runs, failed = make_demos(out, [story.name for story in demos])
    failed += build({out / story.name: case for story, case in trained}, seed=1)
    for log in failed:
        print(f"{log}:\n{log.read_text()[-1500:]}", file=sys.stderr)
    if failed:
        return 1
    written = [(story, write) for story, write in WRITTEN if wanted(story)]
    for story, write in written:
        shutil.rmtree(out / story.name, ignore_errors=True)
        write(out / story.name)
    stories = []
    for story in (*demos, *(story for story, _ in (*trained, *written))):
        target, golden = runs.get(story.name) or (out / story.name / side for side in ("target", "golden"))
        truths = {
            key: truth and truth._asdict() for key, truth in (("truth", story.truth), ("overflow", story.overflow))
        }
        stories.append({**story._asdict(), **truths, "target": str(target), "golden": str(golden)})
    (out / "stories.json").write_text(json.dumps(stories, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

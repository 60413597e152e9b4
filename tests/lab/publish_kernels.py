"""Planted lowering bugs and small models through check_kernels; with --write, the tables of docs/{en,zh}/lab/compiled.md.

.venv/bin/python tests/lab/publish_kernels.py --write
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from lowering_bugs import BUGS, plant
from msprobe.pytorch.compile_accuracy_checker import check_kernels
from publish_lab import REPO
from published import replaced
from whole_models import MODELS as WHOLE
from whole_models import hf, tokens

MODELS = {
    **WHOLE,
    "mistral": (lambda: hf("Mistral", num_key_value_heads=2), lambda: tokens(4, 16), 4),
    "phi": (lambda: hf("Phi"), lambda: tokens(4, 16), 4),
}
# A fresh process has the bug before its script compiles.
SITE = "import sys\nsys.path.insert(0, {here!r})\nimport lowering_bugs\nlowering_bugs.plant({name!r})\n"


def planted(bug, scratch):
    """(kernel, node, lines, whether the script fails in a fresh process)."""
    site = Path(scratch) / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(SITE.format(here=str(Path(__file__).resolve().parent), name=bug.name))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, [BEFORE])])
    x = torch.randn((8, 32), generator=torch.Generator().manual_seed(0)).requires_grad_()
    restore = plant(bug.name)
    try:
        rows = check_kernels(bug.model, x, repro_dir=str(Path(scratch) / "repro"), backward=False)
    finally:
        restore()
    wrong = [row for row in rows if row.verdict == "compiled wrong"]
    if not wrong:
        return None
    row = wrong[0]
    return {"kernel": row.kernel, "node": row.blamed, "lines": list(row.lines), "repro": bool(row.repro)}


BEFORE = os.environ.get("PYTHONPATH", "")


def clean(name):
    """{verdict: rows} of a model, forward and backward."""
    build, make, _ = MODELS[name]
    torch.manual_seed(0)
    inputs = make()
    verdicts = {}
    model = build().train()
    model = model if not hasattr(model, "config") else Logits(model)
    for row in check_kernels(model, *inputs):
        verdicts[row.verdict] = verdicts.get(row.verdict, 0) + 1
    return verdicts


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids).logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--results", default="", help="a file of results, which are not computed again")
    args = parser.parse_args()
    known = json.loads(Path(args.results).read_text()) if args.results and Path(args.results).exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        for kind, names, make in (
            ("bug", [bug.name for bug in BUGS], lambda n: planted(next(b for b in BUGS if b.name == n), scratch)),
            ("clean", list(MODELS), clean),
        ):
            for name in names:
                if f"{kind}: {name}" not in known:
                    known[f"{kind}: {name}"] = make(name)
                    print(kind, name, known[f"{kind}: {name}"], flush=True)
                    if args.results:
                        Path(args.results).write_text(json.dumps(known, indent=1))
    if args.write:
        write(known)


def write(known):
    heads = {
        "en": ("| planted bug | kernel | FX node | line | fails again |", "| model | verdicts |"),
        "zh": ("| 植入的错误 | kernel | FX 节点 | 行 | 再次失败 |", "| 模型 | 判定 |"),
    }
    for language, (bugs, models) in heads.items():
        yes, no = ("yes", "no") if language == "en" else ("是", "否")
        lines = [bugs, "|---|---|---|---|---|"]
        for bug in BUGS:
            found = known.get(f"bug: {bug.name}")
            cells = (
                (f"`{found['kernel']}`", f"`{found['node']}`", ", ".join(found["lines"]), yes if found["repro"] else no)
                if found
                else (no,) * 4
            )
            lines.append(f"| {bug.name} | " + " | ".join(cells) + " |")
        lines += ["", models, "|---|---|"]
        for name in MODELS:
            if known.get(f"clean: {name}"):
                lines.append(f"| {name} | " + ", ".join(f"{v} {k}" for k, v in known[f"clean: {name}"].items()) + " |")
        page = REPO / "docs" / language / "lab" / "compiled.md"
        page.write_text(replaced(page.read_text(), "planted", "\n".join(lines)))


if __name__ == "__main__":
    main()

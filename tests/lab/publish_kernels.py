"""Planted lowering bugs and small models through check_kernels; with --write, the tables of docs/{en,zh}/lab/compiled.md.

.venv/bin/python tests/lab/publish_kernels.py --write
"""

import argparse
import json
import os
import subprocess
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


def fails(script, path):
    """Whether a script that check_kernels wrote shows a wrong result in a fresh process."""
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, script], env=env, stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout.startswith("distance"), done
    return done.returncode == 1


def planted(bug, scratch):
    """(kernel, node, lines, whether the script fails again in a fresh process with the bug, and only with it)."""
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
    again = bool(row.repro) and fails(row.repro, os.environ["PYTHONPATH"]) and not fails(row.repro, BEFORE)
    return {"kernel": row.kernel, "node": row.blamed, "lines": list(row.lines), "repro": again}


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
    for language, said in TEXTS.items():
        bugs = [(bug.name, known.get(f"bug: {bug.name}")) for bug in BUGS]
        found = [bug for _, bug in bugs if bug and bug["node"] and bug["lines"]]
        count = {"all": len(bugs), "found": len(found), "again": sum(bug["repro"] for bug in found)}
        lines = [said["bugs"].format(**count), "", *said["head of bugs"]]
        for name, bug in bugs:
            lines.append(f"| {name} | " + (f"`{bug['kernel']}` | `{bug['node']}` |" if bug else f"{said['no']} | |"))
        clean = {name: known[f"clean: {name}"] for name in MODELS if f"clean: {name}" in known}
        total = {verdict: sum(rows.get(verdict, 0) for rows in clean.values()) for verdict in VERDICTS}
        count = {
            "models": len(clean),
            "rows": sum(total.values()),
            **{v.replace(" ", "_"): n for v, n in total.items()},
        }
        lines += ["", said["clean"].format(**count), ""]
        lines += [f"| {said['model']} | {' | '.join(VERDICTS)} |", "|---|" + "--:|" * len(VERDICTS)]
        for name, rows in clean.items():
            lines.append(f"| {name} | " + " | ".join(str(rows.get(verdict, 0)) for verdict in VERDICTS) + " |")
        page = REPO / "docs" / language / "lab" / "compiled.md"
        page.write_text(replaced(page.read_text(), "planted", "\n".join(lines)))


VERDICTS = ("same bits", "both round-off", "compiled nearer", "eager nearer", "not known", "compiled wrong")
TEXTS = {
    "en": {
        "bugs": "Planted in Inductor's lowering: {found} of {all} found, with the FX node and the source line; {again} with a"
        " script that fails again in a fresh process, and passes in one without the bug (`tests/lab/publish_kernels.py`).",
        "head of bugs": ["| what is wrong | kernel | FX node |", "|---|---|---|"],
        "no": "not found",
        "clean": "The {models} models of that script without a fault have {rows} results, forward and backward:"
        " {compiled_wrong} are called wrong, {not_known} are not known.",
        "model": "model",
    },
    "zh": {
        "bugs": "植入 Inductor 的 lowering 的错误：{all} 个中找到 {found} 个，都指出 FX 节点和源代码行；其中 {again} 个有复现脚本，"
        "在新进程中再次失败，在没有该错误的进程中通过（`tests/lab/publish_kernels.py`）。",
        "head of bugs": ["| 错误 | kernel | FX 节点 |", "|---|---|---|"],
        "no": "未找到",
        "clean": "该脚本中 {models} 个没有错误的模型（前向和反向）共有 {rows} 个结果：判为 wrong 的 {compiled_wrong} 个，未知的 {not_known} 个。",
        "model": "模型",
    },
}


if __name__ == "__main__":
    main()

"""Plants the faults of anatomy.py and prints what compare says of how they are wrong; with --write, docs/{en,zh}/compare/anatomy.md.

.venv/bin/python tests/sabotage/publish_anatomy.py --write
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from anatomy import FORMS, STATISTICS_FORMS
from anatomy_score import is_right, said_in
from launch import REPO, run_python
from make_dumps import FORM_SETS

HERE = Path(__file__).resolve().parent


def dumps_in(root):
    if root.exists():
        return
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    run_python([HERE / "make_dumps.py", root, "--sets", *FORM_SETS, "clean"], env=environment, timeout=900)


def planted(form):
    return form.kind + (f" `{json.dumps(form.parameter)}`" if form.parameter else "")


def measure(root):
    dumps_in(root)
    found, rows = {}, []
    for key, directory, forms in (("tensors", "forms", FORMS), ("statistics", "forms_of_statistics", STATISTICS_FORMS)):
        said = said_in(root / directory)
        right = {form.name: is_right(form, said[form.name]) for form in forms}
        found.update({f"{key}_all": len(forms), f"{key}_right": sum(right.values())})
        found[f"{key}_wrong"] = sum(said[name].claims and not good for name, good in right.items())
        if key == "tensors":
            rows = [(form, said[form.name], right[form.name]) for form in forms]
    clean = said_in(root / "clean", steps=False)
    found.update(clean_all=len(clean), clean_claims=sum(said.claims for said in clean.values()))
    found["rows"] = "\n".join(
        f"| {form.name} | {form.about} | {form.level} | {planted(form)} | {said.text or '-'} | {'+' if good else '-'} |"
        for form, said, good in rows
    )
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the two pages")
    parser.add_argument("--keep", type=Path, help="leave the dumps here; those of an earlier run are taken as they are")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(args.keep or Path(scratch) / "dumps")
    for key in ("tensors", "statistics"):
        found[f"{key}_silent"] = found[f"{key}_all"] - found[f"{key}_right"] - found[f"{key}_wrong"]
    for language in ("en", "zh"):
        text = (HERE / f"anatomy_page.{language}.txt").read_text(encoding="utf-8").format(**found)
        if language == "en":
            print(text)
        if args.write:
            (REPO / "docs" / language / "compare" / "anatomy.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""How the first difference is wrong, as compare says it, against what was planted: `anatomy_score.py OUT/forms [NAME ...]`."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import find_command


class Said(NamedTuple):
    name: str
    origin: str  # op and item; "" for none
    kind: str  # "unexplained" where nothing is said
    parameter: dict
    residual: Optional[float]
    text: str

    @property
    def claims(self):
        return self.kind != "unexplained"


def said_of(root, steps=True):
    """The first origin of one pair."""
    sides = [root / side / ("" if steps else "step0") for side in ("target", "golden")]
    command = [find_command(), "compare", "-tp", sides[0], "-gp", sides[1], "-o", root / "compare", "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return Said(root.name, "", "unexplained", {}, None, done.stderr[-300:])
    origins = json.loads(done.stdout)["verdict"]["origins"]
    if not origins:
        return Said(root.name, "", "unexplained", {}, None, "")
    anatomy = origins[0]["anatomy"] or {"kind": "unexplained"}
    place = f"{origins[0]['op']} {anatomy.get('item') or origins[0]['item'] or ''}".strip()
    text = anatomy.get("text", {}).get("en", "")
    return Said(root.name, place, anatomy["kind"], anatomy.get("parameter", {}), anatomy.get("residual"), text)


def is_right(form, said):
    """The kind, and all of the parameter that was planted."""
    if said.kind != form.kind:
        return False
    return all(matches(key, value, said.parameter.get(key)) for key, value in form.parameter.items())


def matches(key, planted, told):
    if key in ("factor", "offset"):
        return told is not None and abs(told - planted) <= 1e-4 * abs(planted)
    if key == "meanings":
        return set(planted) <= set(told or [])
    return told == planted


def said_in(directory, names=(), steps=True):
    """{name: Said} of a set."""
    roots = [path for path in sorted(Path(directory).iterdir()) if not names or path.name in names]
    with ThreadPoolExecutor(2) as pool:
        return {said.name: said for said in pool.map(lambda root: said_of(root, steps), roots)}


def main():
    from anatomy import FORMS, STATISTICS_FORMS

    forms = {form.name: form for form in FORMS + STATISTICS_FORMS}
    good = 0
    results = said_in(sys.argv[1], sys.argv[2:], steps=Path(sys.argv[1]).name != "clean")
    for name, said in results.items():
        form = forms.get(name)
        right = is_right(form, said) if form else not said.claims
        good += right
        print(
            f"{'right' if right else 'WRONG':6} {name:24} {said.kind} {said.parameter} {said.residual} | {said.origin} {said.text}"
        )
        if form and not right:
            print(f"       planted: {form.kind} {form.parameter}")
    print(f"{good} of {len(results)}")


if __name__ == "__main__":
    main()

"""How many weights find their partners by name alone: each family of transformers against the layouts of others.

    .venv/bin/python tests/python/publish_weight_names.py      # prints the table of docs/en/checks/checkpoints.md

The map is found with other values on the other side, so that nothing but names and shapes can tell, and judged with the
right values: a weight counts as found when all its elements are bit-equal under that map.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "golden")]
from graph_cases import run  # noqa: E402
from weight_layouts import FAMILIES, LAYOUTS, state_of  # noqa: E402


def judge(family, layout, work):
    """(weights, those found, names of the others)"""
    state, config = state_of(family)
    other = LAYOUTS[family][layout](state)
    rng = torch.Generator().manual_seed(1)
    side = work / "a"
    side.mkdir(exist_ok=True)
    torch.save(state, side / "pytorch_model.bin")
    config.save_pretrained(side)
    torch.save({n: torch.randn(t.shape, generator=rng) for n, t in other.items()}, work / "blank.pt")
    torch.save({n: t.contiguous() for n, t in other.items()}, work / "b.pt")
    run(["ckpt", "compare", side, work / "blank.pt", "--map-out", work / "map.yaml"], check=False)
    done = run(["ckpt", "compare", side, work / "b.pt", "--map", work / "map.yaml", "--json"], check=False)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    equal = {}
    for weight in result["weights"]:
        name = weight["a"].split("[")[0]
        if weight["verdict"] in ("bit-equal", "equal"):
            equal[name] = equal.get(name, 0) + weight["elements"]
    lost = [n for n, t in state.items() if equal.get(n, 0) < t.numel()]
    return len(state), len(state) - len(lost), lost


def main():
    print("| family | of transformers against | weights | found |\n|---|---|--:|--:|")
    for family in FAMILIES:
        for layout in LAYOUTS[family]:
            with tempfile.TemporaryDirectory() as work:
                weights, found, lost = judge(family, layout, Path(work))
            print(f"| {family} | {layout} | {weights} | {found / weights:.1%} |", flush=True)
            if lost:
                print("   ", lost[:12], len(lost), file=sys.stderr)


if __name__ == "__main__":
    main()

"""msprobe curves: which column of a table is meant, by its name or because only one can be."""

import json
import math

import pytest
from graph_cases import run

STEPS = 40


def table(path, names, shift=0.0):
    """A column of steps first; the others fall, each from another height."""
    rows = [",".join(f'"{name}"' for name in names)]
    for step in range(1, STEPS + 1):
        rows.append(
            ",".join([str(step)] + [f"{k + 3 * math.exp(-step / 20) + shift:.6f}" for k in range(1, len(names))])
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")
    return path


def curves(folder, names, other=None):
    a, b = table(folder / "a" / "t.csv", names), table(folder / "b" / "t.csv", other or names, 0.5)
    return run(["curves", a, b, "--json"], check=False)


@pytest.mark.parametrize(
    ("names", "other"),
    [
        (["Step", "calm-lake-7 - train/loss", "calm-lake-7 - train/loss__MIN"], ["Step", "wild-sea-8 - train/loss"]),
        (["Step", "run - with - marks - loss"], None),
        (["step", "validation/loss", "my_model/denoising_loss"], None),
        (["step", "loss_scale", "eval_loss", "contrastive.loss"], None),
        (["step", "train_loss_epoch", "train_loss_step"], None),
    ],
)
def test_the_column_that_can_be_meant_is_the_loss(names, other, tmp_path):
    done = curves(tmp_path, names, other)
    assert done.returncode in (0, 1, 5), done.stderr
    assert {rule["rule"] for rule in json.loads(done.stdout)["rules"]} >= {"step1_loss"}


@pytest.mark.parametrize(
    "names",
    [
        ["Step", "calm-lake-7 - train/loss", "wild-sea-8 - train/loss"],
        ["step", "policy_loss", "value_loss"],
        ["step", "eval_loss"],
    ],
)
def test_what_two_columns_or_none_can_mean_is_refused(names, tmp_path):
    done = curves(tmp_path, names)
    assert done.returncode == 3 and "--loss" in done.stderr and names[1] in done.stderr


@pytest.mark.parametrize("rate", ["lr-AdamW", "lr-SGD", "lr-AdamW/pg1", "run-1 - train/learning_rate"])
def test_the_rate_of_lightning_and_of_wandb_is_read(rate, tmp_path):
    names = ["step", rate, "train_loss"] + (["lr-AdamW/pg2"] if rate.endswith("pg1") else [])
    done = curves(tmp_path, names)
    rules = {rule["rule"]: rule["verdict"] for rule in json.loads(done.stdout)["rules"]}
    assert rules["learning_rate"] == "fail", rules


@pytest.mark.parametrize("factor,verdict", [(1, "pass"), (2, "fail")])
def test_a_rate_that_one_run_prints_with_fewer_digits_is_the_same(factor, verdict, tmp_path):
    sides = []
    for side, digits in (("a", 8), ("b", 4)):
        rates = (1e-3 / 3 * step / STEPS * (factor if side == "b" else 1) for step in range(1, STEPS + 1))
        rows = [f"{step},{3 - 0.01 * step:.4f},{rate:.{digits}g}" for step, rate in enumerate(rates, 1)]
        (tmp_path / side).mkdir()
        (tmp_path / side / "t.csv").write_text("\n".join(["step,loss,learning_rate", *rows]) + "\n")
        sides.append(tmp_path / side / "t.csv")
    done = run(["curves", *sides, "--json"], check=False)
    rules = {rule["rule"]: rule["verdict"] for rule in json.loads(done.stdout)["rules"]}
    assert rules["learning_rate"] == verdict

"""Defaults of src/checks/defaults.def held against the installed transformers."""

import dataclasses
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "checks"
FIELDS = {  # of TrainingArguments, by quantity
    "optimizer": "optim",
    "lr": "learning_rate",
    "beta1": "adam_beta1",
    "beta2": "adam_beta2",
    "eps": "adam_epsilon",
    "weight_decay": "weight_decay",
    "lr_schedule": "lr_scheduler_type",
    "warmup_steps": "warmup_steps",
    "clip_grad": "max_grad_norm",
    "micro_batch": "per_device_train_batch_size",
    "accumulation": "gradient_accumulation_steps",
    "seed": "seed",
    "deterministic": "full_determinism",
    "label_smoothing": "label_smoothing_factor",
}
OWN = {"undecayed", "min_lr", "shuffle"}  # of the code of the trainer and of its schedules, no fields


def defaults_of(dialect):
    text = (SOURCE / "defaults.def").read_text(encoding="utf-8")
    return dict(re.findall(rf'^MSP_DEFAULT\({dialect}, (\w+), "([^"]*)"\)', text, re.M))


def same(ours, theirs):
    try:
        return float(ours) == float(theirs)
    except (TypeError, ValueError):
        return str(ours) == str(theirs)


@pytest.mark.deep
def test_defaults_of_the_trainer():
    arguments = pytest.importorskip("transformers").TrainingArguments
    fields = {field.name: field.default for field in dataclasses.fields(arguments)}
    ours = defaults_of("kHfTrainer")
    assert set(ours) == set(FIELDS) | OWN
    for quantity, field in FIELDS.items():
        theirs = fields[field]
        if quantity == "optimizer":  # fused or not, it is the same rule
            theirs = str(theirs).removesuffix("_fused")
        assert same(ours[quantity], theirs), (quantity, ours[quantity], theirs)


@pytest.mark.deep
@pytest.mark.parametrize("family", ["LlamaConfig", "Qwen2Config", "Qwen3Config", "MistralConfig", "DeepseekV3Config"])
def test_defaults_of_models(family):
    """A saved config.json has all values of its class; the defaults stand in where somebody wrote less."""
    config = getattr(pytest.importorskip("transformers"), family)()
    ours = defaults_of("kHfModel")
    assert same(ours["attention_dropout"], config.attention_dropout) and same(ours["hidden_dropout"], 0)
    assert same(ours["init_std"], config.initializer_range)
    rope = getattr(config, "rope_parameters", None) or {}
    assert same(ours["rope_base"], rope.get("rope_theta", getattr(config, "rope_theta", 10000.0)))

"""The tool does not change the run: losses, gradients, parameters, buffers and random states, bit for bit, of all models."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from captures import BARE, captures, ours_of  # noqa: F401 - a fixture
from models import MODELS


@pytest.mark.parametrize("model", MODELS)
def test_training_computes_the_same_bits(captures, model):  # noqa: F811
    bare = captures.bits(model, "ours", BARE)
    assert len(bare[0]) == 2
    for config in ours_of(model):
        for rank, (ours, plain) in enumerate(zip(captures.bits(model, "ours", config), bare)):
            for step, (with_tool, without) in enumerate(zip(ours, plain)):
                for what in without:
                    assert with_tool[what] == without[what], f"{what} of step {step}, rank {rank}, {config}"
        # It did record, and everything.
        for step in range(2):
            for dump in captures.dumps(model, "ours", config, step):
                assert len(dump.data) > 5
                assert not (dump.directory / "dump_error_info.log").exists(), config
        assert "skipped" not in captures.log(model, config)

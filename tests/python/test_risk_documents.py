"""The documents list what the risk level FOCUS leaves out, and what no level records."""

import re
from pathlib import Path

import pytest
import torch
from msprobe.pytorch.apis import LOW, hooked_apis

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_names_are_those_of_the_recorder(language):
    page = (DOCS / language / "capture" / "config.md").read_text(encoding="utf-8")
    left_out, never = (block.split() for block in re.findall(r"```text\n([^`]*)```", page)[-2:])
    apis = hooked_apis(torch)
    assert left_out == sorted({api.name for api in apis if api.risk == LOW})
    assert never and not {api.name for api in apis} & set(never)

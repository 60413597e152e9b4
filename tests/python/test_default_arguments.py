"""The table of default arguments is what the installed PyTorch says."""

import re
import subprocess
import sys
from pathlib import Path

import torch

TOOL = Path(__file__).parents[2] / "tools" / "default_arguments.py"


def test_the_table_is_what_pytorch_says():
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_defaults_are_those_of_calls():
    """A call without the argument gives the same as one with what the table has."""
    text = (TOOL.parent.parent / "src/ops/default_arguments.def").read_text()
    rows = re.findall(r'MSP_DEFAULT_ARGUMENT\("(\w+)", -?\d+, "(\w+)", "([^"]*)"\)', text)
    table = {(name, argument): value for name, argument, value in rows}
    x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    for name, argument, call in (
        ("gelu", "approximate", lambda **k: torch.nn.functional.gelu(x, **k)),
        (
            "scaled_dot_product_attention",
            "dropout_p",
            lambda **k: torch.nn.functional.scaled_dot_product_attention(x, x, x, **k),
        ),
        ("add", "alpha", lambda **k: torch.add(x, x, **k)),
        ("layer_norm", "eps", lambda **k: torch.nn.functional.layer_norm(x, (4,), **k)),
    ):
        value = table[name, argument]
        given = value if argument == "approximate" else float(value)
        assert torch.equal(call(), call(**{argument: given})), name

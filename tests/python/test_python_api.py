"""The Python reference: each public name is on its page, and its docstring says all that a caller gives and gets."""

import ast
import re
import sys

import pytest
from launch import REPO

sys.path.insert(0, str(REPO / "tools" / "docs"))

import api

NAMES = [(module, name) for module in api.MODULES for name in api.public_names(module)]


def callables(module, name):
    """The functions that a public name stands for, each with the text that is to describe it."""
    found = api.definition(module, name)
    if isinstance(found.node, ast.FunctionDef):
        yield name, found.node, found.text
    elif isinstance(found.node, ast.ClassDef):
        for method, node in api.methods(found).items():
            own = ast.get_docstring(node) or ""
            yield f"{name}.{method}", node, own + found.text if method == "__init__" else own


@pytest.mark.parametrize(("module", "name"), NAMES, ids=".".join)
def test_each_public_name_is_described(module, name):
    assert api.definition(module, name).text
    for title, node, text in callables(module, name):
        assert text, title
        for parameter in api.parameters(node):
            assert re.search(rf"(?<!\w){re.escape(parameter.lstrip('*'))}(?!\w)", text), (title, parameter)
        returns = ast.unparse(node.returns) if node.returns else "None"
        is_value = any(ast.unparse(mark) == "property" for mark in node.decorator_list)
        if returns not in ("None", "NoReturn") and not is_value:
            assert re.search(r"^(Returns|Yields):|Returns? ", text, re.MULTILINE), title


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_lists_and_shows_every_name(language):
    text = (REPO / "docs" / language / "api.md").read_text(encoding="utf-8")
    sections = dict(
        zip(re.findall(r"^## (.*)$", text, re.MULTILINE), re.split(r"^## .*$", text, flags=re.MULTILINE)[1:])
    )
    assert list(sections) == list(api.MODULES)
    shown = api.fill(text)
    for module, section in sections.items():
        assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(api.public_names(module))
        for name in api.public_names(module):
            assert f"\n### `{module}.{name}`\n" in shown


def test_a_docstring_becomes_markdown():
    text = "Does it.\n\nArgs:\n    a: One,\n        and more (docs/en/compare/json.md).\n    *b: Two.\n\nReturns:\n    Three."
    assert api.markdown(text) == (
        "Does it.\n\n**Args**\n\n- `a`: One, and more ([compare/json](compare/json.md)).\n- `*b`: Two.\n\n**Returns**: Three.\n"
    )

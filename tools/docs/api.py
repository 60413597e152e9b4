"""The public Python names, read from their sources without importing them, so that no framework has to be installed.

A page marks with `<!-- names of MODULE: tools/docs/api.py -->` where the signatures and docstrings of a module go.
"""

import ast
import pathlib
import re
from typing import NamedTuple

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
MARK = re.compile(r"^<!-- names of ([\w.]+): tools/docs/api\.py -->$", re.MULTILINE)
MODULES = (
    "msprobe",
    "msprobe.pytorch",
    "msprobe.mindspore",
    "msprobe.pytorch.compile_accuracy_checker",
    "msprobe.response_anomaly",
    "msprobe.core.config_check",
    "msprobe.core.monitor_v2",
)
_SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes):$")
_PAGE = re.compile(r"docs/en/([\w/]+)\.md")
_ITEM = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): (.*)$")


class Definition(NamedTuple):
    module: str
    node: ast.AST  # a class, a function, or what is assigned
    text: str  # its docstring


def _file(module):
    path = PYTHON.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _tree(module):
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _absolute(module, level, name):
    """The module that a relative import in `module` names."""
    if not level:
        return name or ""
    parts = module.split(".") if _file(module).name == "__init__.py" else module.split(".")[:-1]
    parts = parts[: len(parts) - level + 1]
    return ".".join([*parts, *([name] if name else [])])


def _assigned(tree, name):
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", None) == name for target in node.targets):
            return node.value
    return None


def public_names(module):
    """The names of `__all__`, without those that begin with an underscore."""
    return [name for name in ast.literal_eval(_assigned(_tree(module), "__all__")) if not name.startswith("_")]


def definition(module, name):
    """Where a name of a module is defined, through every import; None where no source defines it."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return Definition(module, node, ast.get_docstring(node) or "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    source = _absolute(module, node.level, node.module)
                    return definition(source, alias.name) if source.startswith("msprobe") else None
    # Names that are imported when they are first asked for.
    for table in ("_RECORDING",):
        found = _assigned(tree, table)
        places = ast.literal_eval(found) if found else {}
        if name in places:
            place = places[name].lstrip(".")
            return definition(_absolute(module, len(places[name]) - len(place), place), name)
    for node, behind in zip(tree.body, tree.body[1:]):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            said = getattr(getattr(behind, "value", None), "value", "")
            return Definition(module, node.value, said if isinstance(said, str) else "")
    return None


def methods(found):
    """The public methods and properties of a class, those of its own bases too, by name."""
    members = {}
    for base in found.node.bases:
        above = definition(found.module, ast.unparse(base).split("[")[0])
        if above and isinstance(above.node, ast.ClassDef):
            members.update(methods(above))
    for node in found.node.body:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
            members[node.name] = node
    return members


def parameters(node):
    """The names that a caller can give, with the stars of those that take any number."""
    arguments = node.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [argument.arg for argument in arguments.kwonlyargs]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def _is_property(node):
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)


def _parameter(argument, default, stars=""):
    annotation = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    equals = " = " if annotation else "="
    return f"{stars}{argument.arg}{annotation}" + (f"{equals}{ast.unparse(default)}" if default else "")


def signature(name, node):
    """The call as Python writes it, a parameter a line where it is long."""
    returns = ast.unparse(node.returns) if node.returns and node.name != "__init__" else ""
    if _is_property(node):
        return f"{name}: {returns}"
    arguments = node.args
    places = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(places) - len(arguments.defaults)) + arguments.defaults
    listed = [_parameter(*pair) for pair in zip(places, defaults)]
    if places[:1] and places[0].arg in ("self", "cls"):
        listed = listed[1:]
    if arguments.vararg:
        listed.append(_parameter(arguments.vararg, None, "*"))
    elif arguments.kwonlyargs:
        listed.append("*")
    listed += [_parameter(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        listed.append(_parameter(arguments.kwarg, None, "**"))
    after = f" -> {returns}" if returns else ""
    line = f"{name}({', '.join(listed)}){after}"
    return line if len(line) <= 90 else f"{name}(\n" + "".join(f"    {part},\n" for part in listed) + f"){after}"


def _items(lines):
    """Rows of a section: the name and its text, whose further lines are indented."""
    rows = []
    for line in lines:
        match = _ITEM.match(line)
        if match and not line.startswith(" "):
            rows.append([match[1], match[2]])
        elif rows:
            rows[-1][1] += " " + line.strip()
        elif line.strip():
            rows.append(["", line.strip()])
    return rows


def markdown(docstring):
    """A docstring in Google's style as Markdown."""
    out, section, body = [], None, []

    def close():
        if section in ("Returns", "Yields"):
            out.append(f"**{section}**: {' '.join(body).strip()}\n")
        elif section:
            out.append(f"**{section}**\n")
            out.extend(f"- `{name}`: {text.strip()}" if name else f"- {text.strip()}" for name, text in _items(body))
            out.append("")

    for line in docstring.splitlines():
        match = _SECTION.match(line)
        if match or (section and line and not line.startswith(" ")):
            close()
            section, body = (match[1] if match else None), []
            if not match:
                out.append(line)
        elif section:
            body.append(line[4:])
        else:
            out.append(line)
    close()
    text = "\n".join(out).strip() + "\n"
    return _PAGE.sub(lambda page: f"[{page[1]}]({page[1]}.md)", text)


def _function(title, name, node, level):
    text = ast.get_docstring(node) or ""
    return f"{'#' * level} {title}\n\n```python\n{signature(name, node)}\n```\n\n{markdown(text)}"


def entry(module, name, level=3):
    """The Markdown of one public name."""
    found = definition(module, name)
    title = f"`{module}.{name}`"
    if isinstance(found.node, ast.FunctionDef):
        return _function(title, name, found.node, level)
    if not isinstance(found.node, ast.ClassDef):
        return f"{'#' * level} {title}\n\n```python\n{name} = {ast.unparse(found.node)}\n```\n\n{markdown(found.text)}"
    members = methods(found)
    parts = [f"{'#' * level} {title}\n\n{markdown(found.text)}"]
    if "__init__" in members:
        made = members.pop("__init__")
        parts.append(f"```python\n{signature(name, made)}\n```\n\n{markdown(ast.get_docstring(made) or '')}")
    for method, node in members.items():
        parts.append(_function(f"`{name}.{method}`", f"{name}.{method}", node, level + 1))
    return "\n".join(parts)


def _first_of(module, name):
    """The first of MODULES that has the same thing under this name."""
    found = definition(module, name)
    for earlier in MODULES[: MODULES.index(module)]:
        above = definition(earlier, name) if name in public_names(earlier) else None
        if above and found and (above.module, ast.dump(above.node)) == (found.module, ast.dump(found.node)):
            return earlier
    return module


def reference(module):
    """The Markdown of all public names of a module; what an earlier module has is only named."""
    parts = []
    for name in public_names(module):
        first = _first_of(module, name)
        if first == module:
            parts.append(entry(module, name))
        else:
            anchor = re.sub(r"[^\w-]", "", f"{first}.{name}").lower()
            parts.append(f"### `{module}.{name}`\n\n[`{first}.{name}`](#{anchor})\n")
    return "\n".join(parts)


def fill(text):
    """A page with each mark replaced by the reference of its module."""
    return MARK.sub(lambda mark: reference(mark[1]), text)

"""Types that C++ sources define at namespace scope: two of one name with different members are undefined behaviour that
no compiler or linker reports."""

import collections
import re

# Comments, raw strings, strings and characters hold braces that are none. A digit separator (1'000) is no character.
SILENT = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"([^(\s]*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
NAMESPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*$")
TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*"
    r"(\w+(?:<[^{}();]*>)?)\s*(?:final\s*)?(?::[^:][^;{]*)?$"
)


def types_of(text):
    """(full name, line) of every type defined in a namespace that has a name; local, nested and unnamed ones are passed
    over."""
    text = SILENT.sub(lambda m: '""' + "\n" * m.group(0).count("\n"), text)
    text = DIRECTIVE.sub(lambda m: "\n" * m.group(0).count("\n"), text)
    scopes = []  # name of a namespace, "" for the global scope's extern "C", None for any other brace
    start = 0
    for at in re.finditer(r"[{};]", text):
        head = text[start : at.start()]
        start = at.end()
        if at.group() == "}":
            if scopes:
                scopes.pop()
        elif at.group() == "{":
            namespace = NAMESPACE.search(head)
            type_ = None if namespace or None in scopes else TYPE.search(head)
            if type_:
                where = "::".join([s for s in scopes if s] + [re.sub(r"\s+", " ", type_.group(1))])
                yield where, text.count("\n", 0, at.start()) + 1
            if namespace:
                scopes.append(namespace.group(1) or None)
            else:
                scopes.append("" if re.search(r'extern\s+""\s*$', head) else None)


def shared_names(files):
    """(full name, [places]) of each type that more than one of `files` (name -> text) defines."""
    places = collections.defaultdict(list)
    for name, text in files.items():
        for type_, line in types_of(text):
            places[type_].append(f"{name}:{line}")
    return sorted((t, p) for t, p in places.items() if len({place.rsplit(":", 1)[0] for place in p}) > 1)

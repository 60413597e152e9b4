"""What C++ sources define at namespace scope: types, of which two of one name with different members are undefined
behaviour that no compiler or linker reports, and functions with their lengths."""

import collections
import re

# Comments, raw strings, strings and characters hold braces that are none. A digit separator (1'000) is not a character.
SILENT = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"([^(\s]*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
NAMESPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*$")
TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*"
    r"(\w+(?:<[^{}();]*>)?)\s*(?:final\s*)?(?::[^:][^;{]*)?$"
)
NESTED_TYPE = re.compile(TYPE.pattern.replace(r"(\w+", r"([\w:]+"))
# What stands before the body of a function: its name and parameters, and what may follow these.
FUNCTION = re.compile(r"([\w~]+|operator\s*[^\s\w(]+|operator\s*\(\s*\))\s*\([^;]*$")
ACCESS = re.compile(r"^\s*(?:public|protected|private)\s*:(?!:)")


def cleaned(text):
    text = SILENT.sub(lambda m: '""' + "\n" * m.group(0).count("\n"), text)
    return DIRECTIVE.sub(lambda m: "\n" * m.group(0).count("\n"), text)


def types_of(text):
    """(full name, line) of every type defined in a namespace that has a name; local, nested and unnamed ones are passed
    over."""
    text = cleaned(text)
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


def functions_of(text):
    """(name, first line, lines) of every function with a body, members included; lambdas count with the function around
    them."""
    text = cleaned(text)
    open_ = []  # of each brace: "scope" (namespace, type), (name, first line) of a function, None for anything else
    start = 0
    for at in re.finditer(r"[{};]", text):
        head, begin = text[start : at.start()], start
        start = at.end()
        if at.group() == "}" and open_:
            what = open_.pop()
            if isinstance(what, tuple):
                yield what[0], what[1], text.count("\n", 0, at.start()) + 2 - what[1]
        elif at.group() == "{":
            open_.append(kind_of(head, text, begin) if all(o == "scope" for o in open_) else None)


def kind_of(head, text, begin):
    if NAMESPACE.search(head) or re.search(r'extern\s+""\s*$', head) or NESTED_TYPE.search(head):
        return "scope"
    name = FUNCTION.search(head)
    if not name or re.search(r"[=(,]\s*$", head):
        return None
    access = ACCESS.match(head)
    begin += access.end() if access else 0
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    return re.sub(r"\s+", "", name.group(1)), text.count("\n", 0, begin) + 1


def shared_names(files):
    """(full name, [places]) of each type that more than one of `files` (name -> text) defines."""
    places = collections.defaultdict(list)
    for name, text in files.items():
        for type_, line in types_of(text):
            places[type_].append(f"{name}:{line}")
    return sorted((t, p) for t, p in places.items() if len({place.rsplit(":", 1)[0] for place in p}) > 1)


def shared_words(files):
    """(word, [place (full name)]) of each word that names types of several namespaces."""
    places = collections.defaultdict(dict)
    for name, text in files.items():
        for type_, line in types_of(text):
            places[type_.split("::")[-1] if "<" not in type_ else type_].setdefault(type_, f"{name}:{line} ({type_})")
    return sorted((word, list(found.values())) for word, found in places.items() if len(found) > 1)

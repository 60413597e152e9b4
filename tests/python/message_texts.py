"""Reads the messages out of the C++ sources: each as its template, a line at a time, with {} for each field."""

import re

LITERAL = r'"(?:[^"\\]|\\.)*"'
TEMPLATE = re.compile(rf"\bMsg\(\s*((?:{LITERAL}\s*)+)")
FAILURE = re.compile(r"\b(?:UsageError|BadInput|InternalError|(?:return |Status\(|Status)\{?Code::\w+,\s*)\(?")


def end_of(text, at):
    """Where the bracket ends that `at` is in."""
    depth = 0
    while at < len(text):
        c = text[at]
        if c == '"' or (c == "'" and not text[at - 1].isalnum()):
            at += 1
            while at < len(text) and text[at] != c:
                at += 2 if text[at] == "\\" else 1
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return len(text)


def plain(literal):
    return literal.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def key_of(template):
    """As translate.cc: {:.3f} and {0} are {}, {{ is a brace."""
    return re.sub(r"\{\{|\}\}|\{[^{}]*\}", lambda m: m.group()[0] if m.group() in ("{{", "}}") else "{}", template)


def source_of(path):
    """Without comments, and without the quotation marks that are a character."""
    text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.sub(r"'\\?\"'", "' '", text)


def literal_of(match):
    return plain("".join(part[1:-1] for part in re.findall(LITERAL, match)))


def templates_of(path):
    """The lines of the templates of a source file."""
    for found in TEMPLATE.finditer(source_of(path)):
        for line in literal_of(found.group(1)).split("\n"):
            if line.strip():
                yield key_of(line.lstrip(" "))


def texts_of(path):
    """The literals of a source file, each whole."""
    for found in re.finditer(rf"(?:{LITERAL}\s*)+", source_of(path)):
        yield literal_of(found.group())


def without_template(path):
    """What a source file says of a failure without a template: nobody could translate it."""
    text = source_of(path)
    for call in FAILURE.finditer(text):
        expression = re.sub(r"\s+", " ", text[call.end() : end_of(text, call.end())])
        if '"' in expression and "Msg(" not in expression:
            yield expression

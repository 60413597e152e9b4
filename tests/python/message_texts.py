"""Reads the texts of messages out of the C++ sources: each as a template, with {} for what varies."""

import itertools
import re

CALL = re.compile(
    r"\b(?:UsageError|BadInput|InternalError|PrintWarning|Warn|\w*warnings?(?:\.|->)(?:push_back|emplace_back))\("
)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
VALUE = "{}"


def end_of(text, at, stops):
    """Where the first of `stops` is that is in no brackets and no literal."""
    depth = 0
    while at < len(text):
        c = text[at]
        if c == '"' or (c == "'" and not text[at - 1].isalnum()):
            at += 1
            while at < len(text) and text[at] != c:
                at += 2 if text[at] == "\\" else 1
        elif depth == 0 and any(text.startswith(stop, at) for stop in stops):
            return at
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        at += 1
    return len(text)


def parts_of(text, separator):
    at = 0
    while at <= len(text):
        end = end_of(text, at, [separator])
        yield text[at:end].strip()
        at = end + len(separator)


def plain(literal):
    return literal.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def filled(pattern, values):
    """fmt::format with the values, or {} where there is none."""
    values, out, at, place = [*values], "", 0, 0
    for field in re.finditer(r"\{\{|\}\}|\{(\d*)[^{}]*(?:\{\}[^{}]*)?\}", pattern):
        out += pattern[at : field.start()]
        at = field.end()
        if field.group() in ("{{", "}}"):
            out += field.group()[0]
            continue
        index = int(field.group(1)) if field.group(1) else place
        place += 1
        out += values[index] if index < len(values) else VALUE
    return out + pattern[at:]


def texts_of(expression):
    """What a C++ expression of strings may say."""
    expression = expression.strip()
    question = end_of(expression, 0, [" ? "])
    if question < len(expression):
        colon = end_of(expression, question + 3, [" : "])
        return texts_of(expression[question + 3 : colon]) + texts_of(expression[colon + 3 :])
    terms = [*parts_of(expression, " + ")]
    if len(terms) > 1:
        alternatives = [texts_of(term) for term in terms]
        return ["".join(choice) for choice in itertools.islice(itertools.product(*alternatives), 64)]
    if LITERAL.fullmatch(expression):
        return [plain(expression[1:-1])]
    call = re.match(r"(fmt::format|std::string)?\(", expression)
    if call and expression.endswith(")"):
        arguments = [*parts_of(expression[call.end() : -1], ",")]
        if call.group(1) != "fmt::format":
            return texts_of(arguments[0]) if len(arguments) == 1 else [VALUE]
        values = [texts_of(a) if '"' in a else [VALUE] for a in arguments[1:]]
        patterns = texts_of(arguments[0])
        return [filled(p, v) for p in patterns for v in itertools.islice(itertools.product(*values), 64)]
    return [VALUE]


def messages_of(path):
    """The templates of the messages that a source file makes."""
    text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for call in CALL.finditer(text):
        expression = re.sub(r"\s+", " ", text[call.end() : end_of(text, call.end(), [")"])])
        expression = re.sub(r'(?<!\\)" "', "", expression)
        yield from texts_of(expression)

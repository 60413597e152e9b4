"""Which part of each tensor is recorded: the slices of the configuration and the tokens of one request."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .config import Config, Slice

_rules: list = []  # of the last set_rules(); the last one that applies to a dimension counts


def set_rules(rules: list) -> None:
    """Restricts recording to these parts of tensors; an empty list means everything."""
    global _rules
    _rules = rules
    _core.configure_slices([tuple(rule) for rule in rules])


def choose_rows(config: Config, rows: Sequence[tuple[str, int]]) -> None:
    """Restricts recording to the tokens of the configured request.

    Args:
        config: `request_id` names the request.
        rows: Request and number of tokens, in the order of dimension 0.
    """
    begin = end = total = 0
    for request, tokens in rows:
        if request == config.request_id and begin == end:
            begin, end = total, total + tokens
        elif request == config.request_id and end == total:
            end += tokens
        total += tokens
    # In tensors of other lengths dimension 0 does not count tokens.
    set_rules([*config.slice_, Slice(0, total, begin, end)])


def parts_of(shape: Sequence[int]) -> list:
    """Returns an index for each dimension: the part to record of a tensor that the recorder cannot read by itself."""
    index = [slice(None)] * len(shape)
    for rule in _rules:
        if rule.dim < len(shape) and rule.size in (None, shape[rule.dim]):
            index[rule.dim] = slice(rule.begin, rule.end)
    return index


def problem_of(scheduled_tokens: Any) -> str:
    """Says what is wrong with the argument of start(); empty if nothing is."""
    if not isinstance(scheduled_tokens, Mapping):
        return f"is a {type(scheduled_tokens).__name__}, not a dict"
    for request, tokens in scheduled_tokens.items():
        if not isinstance(request, str):
            return f"has the key {request!r}, which is not text"
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0:
            return f"gives request {request!r} {tokens!r} tokens"
    return ""

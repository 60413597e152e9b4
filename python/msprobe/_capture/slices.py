"""Which part of each tensor is recorded: the slices of the configuration and the tokens of one request."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .config import Config, Slice
from .log import logger

_rules: list = []  # of the last set_rules(); the last one that applies to a dimension counts


def set_rules(rules: list) -> None:
    """Restricts recording to these parts of tensors; an empty list means everything."""
    global _rules
    _rules = rules
    _core.configure_slices([tuple(rule) for rule in rules])


def choose_request(config: Config, scheduled_tokens: Any) -> bool:
    """Restricts the next step to the tokens of the configured request.

    Args:
        config: `request_id` names the request, if there is one.
        scheduled_tokens: {request id: number of tokens}, in the order of dimension 0.

    Returns:
        False if the request is not scheduled, so that the step must not be recorded.
    """
    set_rules(list(config.slice_))
    if config.request_id is None or not scheduled_tokens:
        return True
    problem = _problem(scheduled_tokens)
    if problem:
        logger.warning("scheduled_tokens %s: request_id has no effect in this step.", problem)
        return True
    if config.request_id not in scheduled_tokens:
        logger.warning("request %s is not among scheduled_tokens: the step is not recorded.", config.request_id)
        return False
    begin = 0
    for request, tokens in scheduled_tokens.items():
        if request == config.request_id:
            break
        begin += tokens
    # In tensors of other lengths dimension 0 does not count tokens.
    rule = Slice(0, sum(scheduled_tokens.values()), begin, begin + scheduled_tokens[config.request_id])
    set_rules([*config.slice_, rule])
    return True


def parts_of(shape: Sequence[int]) -> list:
    """Returns an index for each dimension: the part to record of a tensor that the recorder cannot read by itself."""
    index = [slice(None)] * len(shape)
    for rule in _rules:
        if rule.dim < len(shape) and rule.size in (None, shape[rule.dim]):
            index[rule.dim] = slice(rule.begin, rule.end)
    return index


def _problem(scheduled_tokens: Any) -> str:
    if not isinstance(scheduled_tokens, Mapping):
        return f"is a {type(scheduled_tokens).__name__}, not a dict"
    for request, tokens in scheduled_tokens.items():
        if not isinstance(request, str):
            return f"has the key {request!r}, which is not text"
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0:
            return f"gives request {request!r} {tokens!r} tokens"
    return ""

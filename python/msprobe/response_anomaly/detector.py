"""What the functions of this package do with the responses of a batch; the search itself is in C++."""

import json
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from .. import _core

LABELS = ("", "rare char", "garbled", "repetition", "NaN Value")
"""The kinds 0 to 4 of analyze_output_anomaly() in words; 0, nothing, is empty."""

_HERE = os.path.dirname(os.path.realpath(__file__))
_FIRST = ("english_latin", "english_latin_space", "punctuation", "whitespace")  # as responses/anomaly.h numbers them


class Place(NamedTuple):
    """What is wrong with a response.

    Attributes:
        request: Its index in the batch.
        kind: 1 rare character, 2 garbled, 3 repetition, 4 NaN, as analyze_output_anomaly() gives it.
        label: The same in words, of LABELS.
        position: The token, or the first one of the window that decided.
    """

    request: int
    kind: int
    label: str
    position: int


def analyze_output_anomaly(
    topk_logprobs: Sequence[list], tokens: Sequence[list], model_configs: Optional[Sequence[Any]] = None
) -> list:
    """Looks for broken responses in a batch, by the thresholds of `configs/config.yaml` in this package.

    Args:
        topk_logprobs: For each response a dict {token id: log-probability} for each of its tokens.
        tokens: For each response its token ids.
        model_configs: For each response the name of its model, a dict with `model_name`, or None. Where the vocabulary of
            the model is known (`configs/mtype_config.json`, `token2category/`), kinds of writing count.

    Returns:
        For each response [whether it is broken, 0 nothing, 1 rare character, 2 garbled, 3 repetition, 4 NaN].

    Raises:
        ValueError: The thresholds are none.
    """
    found = {place.request: place.kind for place in find_anomalies(topk_logprobs, tokens, model_configs)}
    return [[request in found, found.get(request, 0)] for request in range(len(tokens))]


def find_anomalies(
    topk_logprobs: Sequence[list],
    tokens: Sequence[list],
    model_configs: Optional[Sequence[Any]] = None,
    config_path: Optional[str] = None,
) -> list:
    """Looks for broken responses and says where they are.

    Args:
        topk_logprobs: See analyze_output_anomaly().
        tokens: See analyze_output_anomaly().
        model_configs: See analyze_output_anomaly().
        config_path: Other thresholds than those of the package.

    Returns:
        A Place for each broken response.

    Raises:
        ValueError: The thresholds are none.
    """
    reader = _core.ResponseReader(config_path or os.path.join(_HERE, "configs", "config.yaml"))
    vocabularies = _Vocabularies()
    out = []
    for request, ids in enumerate(tokens):
        if not ids or not topk_logprobs[request]:
            continue
        model = model_configs[request] if model_configs is not None else None
        categories = vocabularies.of(model, ids[-1]) if model is not None else b""
        kind, position = reader.find(list(topk_logprobs[request]), list(ids), categories)
        if kind:
            out.append(Place(request, kind, LABELS[kind], position))
    return out


class _Vocabularies:
    """Kinds of writing of the tokens of known models, a byte each."""

    def __init__(self) -> None:
        with open(os.path.join(_HERE, "configs", "mtype_config.json"), encoding="utf-8") as file:
            self._models = json.load(file)
        self._read: dict = {}

    def of(self, model: Any, last: int) -> bytes:
        """Empty where the model is not known, or its last token says that it is another one."""
        name = self._name(model)
        ends = self._models[name].get("eos", []) if name is not None else []
        if name is None or last not in (ends if isinstance(ends, list) else [ends]):
            return b""
        if name not in self._read:
            self._read[name] = _categories(name)
        return self._read[name]

    def _name(self, model: Any) -> Optional[str]:
        asked = model if isinstance(model, str) else model.get("model_name", "") if isinstance(model, dict) else None
        if asked is None:
            return None
        plain = _plain(asked)
        return next((name for name in self._models if _plain(name) in plain or plain in _plain(name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[-_.\s]", "", name.lower())


def _categories(name: str) -> bytes:
    """Of `token2category/{name}_{size of the vocabulary}.json`; empty without such a file."""
    folder = os.path.join(_HERE, "token2category")
    files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    file_name = next((f for f in files if re.fullmatch(re.escape(name) + r"_\d+\.json", f)), None)
    if file_name is None:
        return b""
    with open(os.path.join(folder, file_name), encoding="utf-8") as file:
        named = json.load(file)
    size = int(file_name[len(name) + 1 : -len(".json")]) + 1
    numbers = {category: number for number, category in enumerate(_FIRST)}
    return bytes(numbers.setdefault(named.get(str(token), "other"), len(numbers) % 256) for token in range(size))

"""Broken responses: the call and the labels of the earlier tool, and where each is."""

import json
import math
import random
import subprocess
from pathlib import Path

import pytest
from msprobe.response_anomaly import LABELS, analyze_output_anomaly, find_anomalies
from response_cases import broken, candidates, garbled, healthy, mixed, planted, rare, repeating


@pytest.mark.parametrize("number, case", list(enumerate(planted())))
def test_planted_faults_have_their_labels(number, case):
    kind, logprobs, tokens = case
    assert analyze_output_anomaly([logprobs], [tokens]) == [[True, kind]]


def test_healthy_responses_are_left_alone():
    rng = random.Random(3)
    cases = [healthy(rng, rng.choice([20, 200, 900])) for _ in range(100)]
    assert find_anomalies(*zip(*cases)) == []


def test_places():
    rng = random.Random(5)
    cases = [
        healthy(rng, 300),
        rare(rng, 300),
        garbled(rng, 600, 0.9),
        repeating(rng, 1000, 9),
        broken(rng, 200, math.nan),
    ]
    places = find_anomalies(*zip(*cases))
    assert [(place.request, place.label) for place in places] == list(enumerate(LABELS))[1:]
    assert places[0].position == 100
    assert 300 - 128 < places[1].position <= 300
    assert 250 - 128 < places[2].position < 1000
    assert places[3].position == 100


def test_kinds_of_writing_of_a_known_vocabulary(monkeypatch):
    from msprobe.response_anomaly import detector

    kinds = bytes(token % 7 for token in range(400000))
    monkeypatch.setattr(detector, "_categories", lambda name: kinds)
    rng = random.Random(2)
    logprobs, tokens = [candidates(rng, -0.1) for _ in range(100)], list(range(100, 200))
    tokens[-1] = 1  # the end of deepseekv3
    logprobs[40] = {token: -3.0 for token in (4, 5, 6, 11, 12)}
    assert analyze_output_anomaly([logprobs], [tokens], ["DeepSeek-V3"]) == [[True, 1]]
    assert analyze_output_anomaly([logprobs], [tokens], [None]) == [[False, 0]]
    logprobs[40] = {token: -3.0 for token in (0, 1, 2, 3, 7)}  # words, spaces and marks: nothing rare
    assert analyze_output_anomaly([logprobs], [tokens], [{"model_name": "deepseek_v3"}]) == [[False, 0]]


def test_empty_and_short():
    rng = random.Random(1)
    assert analyze_output_anomaly([[], [candidates(rng, -0.1)]], [[], [5]]) == [[False, 0], [False, 0]]
    assert analyze_output_anomaly([[candidates(rng, -9.0)]], [[5]]) == [[True, 1]]


@pytest.mark.parametrize(
    "old, new, key",
    [
        ("stride: 64", "stride: 0", "stride"),
        ("window_ratio: 0.2", "window_ratio: 2", "garbled.window_ratio"),
        ("n: 3", "m: 3", "repetition.trajectory.n"),
    ],
)
def test_thresholds_that_are_none(old, new, key, tmp_path):
    from msprobe import response_anomaly

    text = (Path(response_anomaly.__file__).parent / "configs" / "config.yaml").read_text()
    path = tmp_path / "config.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=key):
        find_anomalies([], [], config_path=str(path))


def test_the_earlier_tool_answers_the_same(old_python):
    """On 400 responses of all kinds and lengths."""
    program = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from response_cases import mixed
from msprobe.response_anomaly import analyze_output_anomaly
print(json.dumps(analyze_output_anomaly(*zip(*mixed(400)), None)))
"""
    done = subprocess.run([str(old_python), "-c", program], capture_output=True, text=True, check=True)
    assert analyze_output_anomaly(*zip(*mixed(400))) == json.loads(done.stdout.splitlines()[-1])

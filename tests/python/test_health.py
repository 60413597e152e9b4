"""Health of a model: each value against a plain computation in float64."""

import math

import numpy
import pytest

torch = pytest.importorskip("torch")

from msprobe.pytorch.monitor import health  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)  # later tests of this process expect their own


def test_largest_singular_value_converges_from_look_to_look():
    weight = torch.randn(40, 24)
    truth = numpy.linalg.svd(weight.double().numpy(), compute_uv=False)[0]
    vector = torch.sin(torch.arange(1, 25, dtype=torch.float32) * 1.7) + 0.3
    found = []
    for _ in range(8):
        value, vector = health.largest_singular(weight, vector, 8)
        found.append(float(value))
    # From below, and from look to look nearer: the first two singular values of this matrix differ by 2 %.
    assert all(a <= b * (1 + 1e-6) for a, b in zip(found, found[1:])) and found[-1] <= truth * (1 + 1e-6)
    assert found[0] > 0.9 * truth and found[-1] == pytest.approx(truth, rel=2e-3)
    assert float(health.largest_singular(weight, vector, 400)[0]) == pytest.approx(truth, rel=1e-6)


def test_massive_activations():
    output = torch.randn(3, 50, 16)
    output[1, 2, 3] = -900.0
    plain = numpy.sort(abs(output.double().numpy()).reshape(-1))
    largest, median, ratio = map(float, health.massive(output))
    assert largest == 900
    assert median == pytest.approx(plain[(plain.size - 1) // 2])
    assert ratio == pytest.approx(900 / median)


def test_logit_growth():
    logits = torch.randn(4, 6, 30) * 5
    flat = logits.double().numpy().reshape(-1, 30)
    totals, entropies = [], []
    for row in flat:
        total = math.log(sum(math.exp(v) for v in row))
        totals.append(total**2)
        entropies.append(-sum(math.exp(v - total) * (v - total) for v in row))
    largest, z_loss, entropy = map(float, health.logit_growth(logits))
    assert largest == pytest.approx(abs(flat).max())
    assert z_loss == pytest.approx(numpy.mean(totals), rel=1e-5)
    assert entropy == pytest.approx(numpy.mean(entropies), rel=1e-4)


def test_router():
    weight, logits = torch.randn(6, 20), torch.randn(3, 40, 6)
    rows = logits.double().numpy().reshape(-1, 6)
    share = numpy.exp(rows) / numpy.exp(rows).sum(1, keepdims=True)
    counts = numpy.bincount(rows.argmax(1), minlength=6) * 6 / len(rows)
    unit = weight.double().numpy() / numpy.linalg.norm(weight.double().numpy(), axis=1, keepdims=True)
    cosines = [float(unit[a] @ unit[b]) for a in range(6) for b in range(a + 1, 6)]
    found = list(map(float, health.router_health(weight, logits)))
    expected = [
        -(share * numpy.log(share)).sum(1).mean(),
        counts.max(),
        counts.min(),
        numpy.mean(cosines),
        max(cosines),
    ]
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("case", ["plain", "causal", "boolean mask", "added mask", "shared keys"])
def test_attention(case):
    query, key = torch.randn(2, 4, 7, 8), torch.randn(2, 2 if case == "shared keys" else 4, 7, 8)
    mask = None
    allowed = numpy.ones((7, 7), dtype=bool)
    if case == "causal":
        allowed = numpy.tril(allowed)
    if case.endswith("mask"):
        allowed = numpy.tril(allowed, 2)
        allowed[:, 5] = False
        mask = (
            torch.from_numpy(allowed) if case == "boolean mask" else torch.where(torch.from_numpy(allowed), 0.0, -3e38)
        )
    entropies, most, largest = numpy.zeros((2, 4)), [], 0.0
    for b in range(2):
        for h in range(4):
            k = key[b, h * key.shape[1] // 4].double().numpy()
            for i in range(7):
                scores = (k @ query[b, h, i].double().numpy() / 8**0.5)[allowed[i]]
                largest = max(largest, abs(scores).max())
                share = numpy.exp(scores - scores.max()) / numpy.exp(scores - scores.max()).sum()
                entropies[b, h] -= (share * numpy.log(share)).sum() / 7
                most.append(share.max())
    found = list(map(float, health.attention_health(query, key, mask, case == "causal", None)))
    assert found == pytest.approx([entropies.mean(), entropies.min(), numpy.mean(most), largest], rel=1e-4)

"""Responses with what is wrong with them, for ours and the earlier tool: plain Python, and the same numbers everywhere."""

import math
import random


def candidates(rng, best, count=5, spread=2.0):
    """A dict of ids and log-probabilities, the best of about `best`."""
    out, logprob = {}, best
    for _ in range(count):
        out[50000 * len(out) + rng.randrange(1000, 50000)] = logprob
        logprob -= spread * (0.2 + rng.random())
    return out


def healthy(rng, length):
    tokens = [rng.randrange(1000, 50000) for _ in range(length)]
    return [candidates(rng, -0.02 - 2.5 * rng.random() ** 3) for _ in tokens], tokens


def repeating(rng, length, period, certain=True):
    logprobs, tokens = healthy(rng, length)
    start = length // 4
    line = [rng.randrange(1000, 50000) for _ in range(period)]
    # What a model repeats it is sure of, a little less so where the phrase begins.
    sure = [-0.15 if i == 0 else -0.01 * rng.random() - 0.001 for i in range(period)]
    for i in range(start, length):
        tokens[i] = line[(i - start) % period]
        logprobs[i] = candidates(rng, sure[(i - start) % period] if certain else -1.0)
    return logprobs, tokens


def garbled(rng, length, share):
    logprobs, tokens = healthy(rng, length)
    for i in range(length // 2, length):
        if rng.random() < share:
            logprobs[i] = candidates(rng, -5.5 - rng.random(), spread=0.3)
    return logprobs, tokens


def rare(rng, length):
    logprobs, tokens = healthy(rng, length)
    logprobs[length // 3] = candidates(rng, -7.0, spread=0.3)
    return logprobs, tokens


def broken(rng, length, value):
    logprobs, tokens = healthy(rng, length)
    key = next(iter(logprobs[length // 2]))
    logprobs[length // 2][key] = value
    return logprobs, tokens


def planted():
    """(number of the label, log-probabilities, tokens), 20 of them."""
    rng = random.Random(7)
    out = [(1, *rare(rng, length)) for length in (40, 90, 300, 700, 1500)]
    out += [
        (2, *garbled(rng, length, share))
        for length, share in ((200, 0.6), (300, 0.7), (500, 0.8), (900, 0.9), (2000, 0.9))
    ]
    out += [
        (3, *repeating(rng, length, period))
        for length, period in ((700, 7), (900, 9), (1200, 12), (1500, 20), (2500, 31), (3000, 5))
    ]
    out += [(4, *broken(rng, 200, value)) for value in (math.nan, math.inf, -math.inf, math.nan)]
    return out


def mixed(count):
    """Of all kinds and lengths, to hold two tools to the same answers."""
    rng = random.Random(11)
    out = []
    for _ in range(count):
        length = rng.choice([1, 5, 63, 64, 65, 127, 128, 129, 200, 333, 640, 1500])
        kind = rng.randrange(6)
        if kind == 0 or length < 64:
            out.append(healthy(rng, length))
        elif kind == 1:
            out.append(repeating(rng, length, rng.randrange(2, 50), rng.random() < 0.8))
        elif kind == 2:
            out.append(garbled(rng, length, rng.random()))
        elif kind == 3:
            out.append(rare(rng, length))
        elif kind == 4:
            out.append(broken(rng, length, rng.choice([math.nan, math.inf])))
        else:
            # Waves of certainty: only the autocorrelation sees them.
            logprobs, tokens = healthy(rng, length)
            period = rng.randrange(3, 45)
            for k in range(length):
                wave = 0.5 + 0.5 * math.sin(2 * math.pi * k / period)
                logprobs[k] = candidates(rng, -0.19 * wave - 0.002 * rng.random())
            out.append((logprobs, tokens))
    return out

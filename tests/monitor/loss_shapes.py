"""Made losses of 60 to 1,000 steps: healthy ones of twenty shapes, and falling ones that leap at a step."""

import numpy as np

LENGTHS = (60, 80, 120, 150, 200, 250, 320, 400, 600, 1000)
LEAPS = {40: (60, 80, 150), 132: (150, 320), 252: (300, 400), 502: (550, 600)}


def _drifting(z, alike, size):
    out = np.zeros(len(z))
    for i in range(1, len(z)):
        out[i] = alike * out[i - 1] + size * z[i]
    return out


def _plain(r, t, z, base, sigma):
    return base * np.exp(sigma * z)


def _heavy(r, t, z, base, sigma):
    return base * np.exp(sigma * r.standard_t(3, len(t)))


def _warm_up_hump(r, t, z, base, sigma):
    center, width, height = r.uniform(10, 60), r.uniform(4, 15), r.uniform(0.3, 1.3)
    return base * (1 + height * np.exp(-(((t - center) / width) ** 2))) * np.exp(sigma * z)


def _restarts(r, t, z, base, sigma):
    every = int(r.integers(40, 120))
    return base * (1 + 0.8 * np.where(t >= every, np.exp(-4 * (t % every) / every), 0)) * np.exp(sigma * z)


def _other_data(r, t, z, base, sigma):
    every = int(r.integers(30, max(31, len(t) // 2)))
    factor = np.cumprod(np.where((t > 0) & (t % every == 0), r.choice([1 / 1.5, 1.5, 1.3, 1.2], len(t)), 1))
    return base * np.clip(factor, 0.3, 3) * np.exp(sigma * z)


def _adversarial(r, t, z, base, sigma):
    return 0.7 * np.exp(_drifting(z, 0.8, 0.25)) * (1 + 0.3 * np.sin(t / 7))


def _about_zero(r, t, z, base, sigma):
    return 0.05 * r.standard_t(3, len(t)) + 0.01 * z


def _one_high(r, t, z, base, sigma):
    out = base * np.exp(sigma * z)
    out[int(r.integers(30, len(t)))] *= r.uniform(2, 6)
    return out


def _nearly_zero(r, t, z, base, sigma):
    floor = 1e-6 * np.exp(r.standard_normal(len(t)))
    return np.maximum(2.3 * np.exp(-t / float(r.choice([5, 10, 20]))), floor) * np.exp(0.6 * z)


def _negative(r, t, z, base, sigma):
    return -3 * (1 - np.exp(-t / 40)) + 0.1 * z * (1 + 3 * sigma)


def _constant(r, t, z, base, sigma):
    return np.full(len(t), float(r.choice([0.0, 0.693, 2.3]))) + (1e-7 * z if r.random() < 0.5 else 0)


def _rounded(r, t, z, base, sigma):
    return np.round(base * np.exp(sigma * z), 2)


def _batches_of_one(r, t, z, base, sigma):
    return base * np.exp(z)


def _drifts(r, t, z, base, sigma):
    return base * np.exp(_drifting(z, float(r.choice([0.9, 0.97])), 0.08))


def _seldom_large(r, t, z, base, sigma):
    return np.where(r.random(len(t)) < 0.15, np.exp(z), 0.02 * np.exp(0.5 * z))


def _grows_smoothly(r, t, z, base, sigma):
    return 0.04 * (1e-4 + np.minimum(1, np.exp((t - len(t) * 0.5) / (len(t) * 0.08)))) * np.exp(0.4 * z)


def _late_fall(r, t, z, base, sigma):
    at = int(r.integers(20, len(t) - 10))
    return np.where(t < at, 2.3, 2.3 * np.exp(-(t - at) / 8) + 0.3) * np.exp(sigma * z)


def _epochs(r, t, z, base, sigma):
    return base * np.exp(sigma * z) * np.power(0.8, t // int(r.choice([10, 25, 50])))


def _saw(r, t, z, base, sigma):
    every = int(r.choice([30, 60]))
    return base * (1 + 0.5 * ((t % every) / every)) * np.exp(sigma * z)


def _two_tasks(r, t, z, base, sigma):
    return base * np.where((t // int(r.choice([1, 4, 10]))) % 2, 1.45, 1) * np.exp(sigma * z)


SHAPES = (
    *(
        _plain,
        _heavy,
        _warm_up_hump,
        _restarts,
        _other_data,
        _adversarial,
        _about_zero,
        _one_high,
        _nearly_zero,
        _negative,
    ),
    *(
        _constant,
        _rounded,
        _batches_of_one,
        _drifts,
        _seldom_large,
        _grows_smoothly,
        _late_fall,
        _epochs,
        _saw,
        _two_tasks,
    ),
)


def healthy(seed):
    """(its shape, its losses): noise of 2 % to 35 %, shapes in turn."""
    r = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    t = np.arange(int(r.choice(LENGTHS)))
    sigma, tau, low = (
        float(r.choice(c)) for c in ((0.02, 0.05, 0.1, 0.2, 0.35), (5, 15, 40, 120), (0.02, 0.1, 0.5, 2))
    )
    base = low + (max(2.3, low * 1.5) - low) * np.exp(-t / tau)
    return shape.__name__.strip("_"), shape(r, t, r.standard_normal(len(t)), base, sigma)


def leaping(seed):
    """(how many times, the step, its losses): at once and for ever, in a few steps, or with a slow return."""
    r = np.random.default_rng(10_000 + seed)
    at = list(LEAPS)[seed % len(LEAPS)]
    t = np.arange(int(r.choice(LEAPS[at])))
    sigma, tau, low = (float(r.choice(c)) for c in ((0.05, 0.1, 0.2, 0.35), (5, 15, 40, 120), (0.02, 0.05, 0.1)))
    noise = r.standard_normal(len(t)) if r.integers(2) else r.standard_t(3, len(t))
    times, since = float(r.choice([3, 6, 16, 40])), t - at
    ways = (
        np.full(len(t), times),
        np.minimum(times, 2.0 ** np.clip(since + 1, 0, 30)),
        1 + (times - 1) * np.exp(-np.maximum(since, 0) / 40),
    )
    factor = np.where(since < 0, 1, ways[int(r.integers(len(ways)))])
    return times, at, (low + (2.3 - low) * np.exp(-t / tau)) * np.exp(sigma * noise) * factor

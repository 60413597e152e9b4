"""Whether two sides draw from one distribution: a part of the process of acc_check.

Elements of random results say nothing one by one. Both sides draw again and again, with seeds of their own, until there are enough
values; then the largest distance of the two empirical distributions (Kolmogorov and Smirnov) and their moments are compared. Values that
come often (the zeros of a dropout) are compared by their shares, which the distance contains.
"""

import math
import re

from _replay import Refused

torch = None  # set by the process

# Functions whose results are what they draw.
DRAWING = re.compile(
    r"dropout|rand|normal|uniform|bernoulli|exponential|geometric|cauchy|poisson|binomial|multinomial|gumbel|rrelu"
)
ENOUGH = 20_000  # values of each side
FEW = 1_000  # values; fewer say nothing of a distribution
LEAST_DRAWS, MOST_DRAWS = 30, 200
SAFE = 1.5  # the number of independent values is itself estimated
ROUND_OFF, WRONG = 1e-5, 1e-9  # how likely two equal distributions are as far apart


def threshold(count, chance):
    """The distance that two samples of `count` values each exceed with this probability."""
    return math.sqrt(-math.log(chance / 2) / 2) * math.sqrt(2 / count)


def distance(a, b, slack):
    """The largest distance of two empirical distributions; values that are `slack` apart, relatively, count as equal."""
    values = torch.unique(torch.cat([a, b]))
    below = values - slack * values.abs()
    sides = [side.sort().values for side in (a, b)]
    upto, before = ([torch.searchsorted(s, v, right=True).double() / s.numel() for s in sides] for v in (values, below))
    return max(0.0, (before[0] - upto[1]).max().item(), (before[1] - upto[0]).max().item())


def moments_apart(sides):
    """How many standard errors the means of two lists of draws are apart, and those of their squares."""
    worst = 0.0
    for power in (1, 2):
        means = [torch.stack([(draw**power).mean() for draw in side]) for side in sides]
        error = math.sqrt(sum((m.var() / m.numel()).item() for m in means))
        apart = abs(means[0].mean() - means[1].mean()).item()
        size = max(abs(m.mean()).item() for m in means)
        worst = max(worst, apart / error if error > 1e-6 * size else 0.0 if apart <= 1e-3 * size else math.inf)
    return worst


def independent(sides):
    """How many of the values are drawn independently: those of one draw vary together in a dropout of whole channels."""
    draws = [draw for side in sides for draw in side]
    together = 1.0
    for figure in (lambda x: x, lambda x: x**2, lambda x: (x == 0).double()):
        own = figure(torch.cat(draws)).var().item() / draws[0].numel()
        means = torch.stack([figure(draw).mean() for draw in draws])
        together = max(together, means.var().item() / own if own > 0 else 1.0)
    return sum(draw.numel() for draw in draws) / 2 / (SAFE * together)


def plain(result):
    """The first tensor of numbers in a result, flat and in float64."""
    for value in result:
        if isinstance(value, torch.Tensor) and not value.is_complex() and value.numel():
            return value.detach().cpu().double().reshape(-1)
    raise Refused("it draws random numbers that are no real numbers")


def compare(name, first, draw):
    """Compares a random call.

    Args:
        name: Of the function.
        first: The results of the device and of float64.
        draw: A function of a number that makes the call again, with the same return value.

    Returns:
        "right", "suspicious" or "wrong", and the distance as text.
    """
    if not DRAWING.search(name):
        raise Refused("it draws random numbers")  # and computes with them
    sides = [[plain(result)] for result in first]
    count = sides[0][0].numel()
    if sides[1][0].numel() != count:
        raise Refused("the number of values that it draws is random")
    for number in range(1, max(LEAST_DRAWS, min(MOST_DRAWS, -(-ENOUGH // count)))):
        for side, result in zip(sides, draw(number)):
            side.append(plain(result))
    a, b = (torch.cat(side) for side in sides)
    total = a.numel()
    if total < FEW:
        raise Refused(f"it draws random numbers, and too few of them ({total})")
    if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        raise Refused("it draws random numbers that are not all finite")
    eps = max(
        (torch.finfo(v.dtype).eps for v in first[0] if isinstance(v, torch.Tensor) and v.is_floating_point()),
        default=0.0,
    )
    apart, moments, alone = distance(a, b, 4 * eps), moments_apart(sides), independent(sides)
    verdict = "right"
    for name, chance, errors in (("suspicious", ROUND_OFF, 6.0), ("wrong", WRONG, 9.0)):
        if apart > threshold(alone, chance) or moments > errors:
            verdict = name
    return {"verdict": verdict, "distance": apart, "limit": threshold(alone, ROUND_OFF), "values": total}

"""All that is trained here by its name, and for how many steps."""

import functools

from architectures import ARCHITECTURES, make
from families import FAMILIES, once
from models import MODELS, STEPS


def _architecture(name, rank, world):
    return once(*make(name))


BUILDERS = {**MODELS, **{name: functools.partial(_architecture, name) for name in ARCHITECTURES}, **FAMILIES}


def steps(model):
    return STEPS if model in MODELS else 1

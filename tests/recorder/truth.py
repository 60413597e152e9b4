"""What a case of the zoo says by itself, where the recorder cannot see it; without a recorder nothing happens.

truth.tell("Module.a.Linear.backward.0", "output", [gradient])   # replaces what was recorded, if anything was
truth.unknown("Module.a.Linear.backward.0", "output", "why")    # nothing to compare with
"""

step = 0
recorder = None
told, limits = {}, {}


def tell(name, side, values):
    """`values`: as the entry has them: tensors and None in a list, of `parameters_grad` a dict of such lists."""
    if recorder is not None:
        from figures import item

        with recorder._inside():
            values = (
                {k: [item(v) for v in vs] for k, vs in values.items()} if isinstance(values, dict) else item(values)
            )
            told.setdefault(step, []).append((name, side, values))


def unknown(name, side, why):
    if recorder is not None:
        limits.setdefault(step, []).append((name, side, why))

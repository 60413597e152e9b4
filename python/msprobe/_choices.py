"""Functions that choose elements, such as topk: of equal ones every choice is right (a part of the process of acc_check)."""

from _element import base_of

torch = None  # set by the process

# The values that indices point at, by the position of the indices in the result; None: the result itself.
CHOICES = {name: 1 for name in "sort topk max min kthvalue median nanmedian cummax cummin".split()}
CHOICES |= dict.fromkeys("argmax argmin argsort".split())
# Each gradient of theirs goes to one element; cummax adds several.
MOVES = frozenset("sort msort topk max min kthvalue median nanmedian".split())


def chosen(call, results, truths):
    """Of a function that chooses: {number of the result that holds indices: whether they point at the right values}."""
    name = base_of(call.name)
    if name not in CHOICES or not call.tensors:
        return {}
    place = CHOICES[name] or 0
    if place >= len(results) or (CHOICES[name] and len(results) == 1):
        return {}
    source = next(iter(call.tensors.values()))
    ours, truth = results[place], truths[place]
    if not isinstance(ours, torch.Tensor) or ours.is_floating_point() or ours.shape != truth.shape or not ours.numel():
        return {}
    return {place: same_choice(call, source.detach(), ours.cpu().long(), truth.cpu().long())}


def same_choice(call, source, ours, truth):
    """Whether indices point at the same values; along one dimension, or into the flattened tensor."""
    dim = dimension(call)
    if dim is None:
        flat = source.reshape(-1)
        return bool((ours < flat.numel()).all() and (ours >= 0).all()) and same_values(flat[ours], flat[truth])
    if source.dim() == 0:
        return torch.equal(ours, truth)
    if ours.dim() < source.dim():
        ours, truth = ours.unsqueeze(dim), truth.unsqueeze(dim)
    if not bool((ours < source.shape[dim]).all() and (ours >= 0).all()):
        return False
    if base_of(call.name) in ("sort", "argsort", "topk"):  # each place is chosen once
        ordered = ours.sort(dim).values
        if (ordered.narrow(dim, 1, ordered.shape[dim] - 1) == ordered.narrow(dim, 0, ordered.shape[dim] - 1)).any():
            return False
    return same_values(source.gather(dim, ours), source.gather(dim, truth))


def same_values(a, b):
    """Whether both are equal, NaN to NaN."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def dimension(call):
    """Along which a function chooses; None: among all elements."""
    name = base_of(call.name)
    if name == "msort":
        return 0
    numbers = [v for v in call.spec["args"][1:] if isinstance(v, int) and not isinstance(v, bool)]
    dim = call.spec["kwargs"].get("dim")
    if dim is not None:
        return dim
    position = 1 if name in ("topk", "kthvalue") else 0
    return numbers[position] if len(numbers) > position else None if name in ("argmax", "argmin") else -1


def moves(call, results):
    """Whether a function only moves elements, and no rounding of its input is part of that: the device chooses from the same."""
    if base_of(call.name) not in MOVES:
        return False
    return base_of(call.name) == "msort" or (len(results) > 1 and not results[-1].is_floating_point())


def at_equal(call, results, key, ours, truth):
    """The gradient of what a function chooses from, as it is where equal elements are exchanged so that it is nearest to ours.

    Args:
        call: The call.
        results: Of the device.
        key: The input that it is the gradient of.
        ours: The gradient of the device; None for none.
        truth: In float64; None for none.

    Returns:
        The truth: the gradients of equal elements are in the order of ours.
    """
    if not moves(call, results) or key != next(iter(call.tensors)) or ours is None or truth is None:
        return truth
    if ours.shape != truth.shape or not ours.dim() or truth.is_complex():
        return truth
    # Both in the order of the elements that they belong to; those of equal elements in their own.
    dim = dimension(call)
    source = call.tensors[key].detach().cpu().movedim(dim, -1)
    moved = truth.movedim(dim, -1)
    places = [_ordered(source, gradient) for gradient in (ours.detach().cpu().double().movedim(dim, -1), moved)]
    placed = torch.empty_like(moved).scatter_(-1, places[0], moved.gather(-1, places[1]))
    return placed.movedim(-1, dim)


def _ordered(source, gradient):
    """The places of the elements, ordered by value and among equal ones by gradient."""
    first = gradient.argsort(dim=-1, stable=True)
    return first.gather(-1, source.gather(-1, first).argsort(dim=-1, stable=True))

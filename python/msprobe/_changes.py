"""How the inputs of a call are changed: other elements of a dimension, and the same elements elsewhere in memory.

A module of the programs of the laboratory (_relations.py), which give it torch.
"""

import itertools
import math

torch = None

EXACT = 1e-8  # by how much of its largest element a result in float64 may move and still be the same
MOST_PLACES = 24  # ways to lay a size over the dimensions of the inputs that are tried
MASKED = -1e4  # an additive mask has such elements


class Change:
    """Takes the elements `index` of every dimension that was chosen; -1 stands for a new element, which is padding.

    `rows`: the dimension is the first one of the results, and others of the same size are different ones.
    """

    def __init__(self, size, index, rows=False):
        self.size, self.index, self.rows = size, index, rows

    def apply(self, tensor, dims, lowest):
        """The tensor with its dimensions `dims` changed."""
        for dim in dims:
            index = torch.tensor(self.index, device=tensor.device)
            if -1 in self.index:
                shape = list(tensor.shape)
                shape[dim] = 1
                fill = torch.full(shape, padding_of(tensor, lowest), dtype=tensor.dtype, device=tensor.device)
                tensor = torch.cat([tensor, fill], dim)
                index = torch.where(index < 0, self.size, index)
            tensor = tensor.index_select(dim, index)
        return tensor

    def align(self, got, whole):
        """The elements that both have, or None when the shapes do not fit."""
        if got.dim() != whole.dim() or got.dtype != whole.dtype:
            return None
        kept = [at for at, index in enumerate(self.index) if index >= 0]
        for dim in range(whole.dim()):
            if got.shape[dim] == whole.shape[dim] and (whole.shape[dim] != self.size or (self.rows and dim > 0)):
                continue
            if got.shape[dim] == len(self.index) and whole.shape[dim] == self.size:
                device = got.device
                got = got.index_select(dim, torch.tensor(kept, device=device))
                whole = whole.index_select(dim, torch.tensor([self.index[at] for at in kept], device=device))
            elif got.shape[dim] != whole.shape[dim]:
                return None
        return got, whole


def padding_of(tensor, lowest):
    """What stands in a padded place: nothing, and in a mask what hides it."""
    if not tensor.is_floating_point():
        return 0
    if tensor.numel() and tensor.min() <= MASKED:
        return tensor.min().item()
    return torch.finfo(tensor.dtype).min if lowest else 0


def same(got, whole):
    """Whether two results in float64 are the same."""
    if not (whole.is_floating_point() or whole.is_complex()):
        return torch.equal(got, whole)
    if whole.is_complex():
        got, whole = torch.view_as_real(got), torch.view_as_real(whole)
    there = torch.isfinite(whole)
    if not torch.equal(there, torch.isfinite(got)):
        return False
    if not there.any():
        return True
    return (got[there] - whole[there]).abs().max().item() <= EXACT * whole[there].abs().max().item()


def keep_layout(tensor):
    """A copy of a tensor that lies in memory as the tensor does."""
    if tensor.is_contiguous() or not tensor.numel():
        return tensor.clone()
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    made = torch.empty(extent, dtype=tensor.dtype, device=tensor.device).as_strided(tensor.shape, tensor.stride())
    return made.copy_(tensor)


def placements(tensors, size, first_only):
    """The ways in which a size can lie over the dimensions of the inputs, those that take most dimensions first."""
    ways = []
    for key, tensor in tensors.items():
        dims = [d for d, n in enumerate(tensor.shape) if n == size and (d == 0 or not first_only)]
        options = [()] + [(d,) for d in dims] + ([tuple(dims)] if len(dims) > 1 else [])
        ways.append([(key, option) for option in options])
    count = math.prod(len(options) for options in ways)
    if count > 4096:
        ways = [[options[0], options[-1]] for options in ways][:12]
    every = [{key: dims for key, dims in way if dims} for way in itertools.product(*ways)]
    every = [way for way in every if way]
    return sorted(every, key=lambda way: -sum(len(dims) for dims in way.values()))[:MOST_PLACES]


def every_second(tensor):
    """The tensor as every second element of a longer one."""
    if not tensor.dim() or tensor.numel() < 2:
        return tensor
    return torch.zeros((*tensor.shape, 2), dtype=tensor.dtype, device=tensor.device).select(-1, 0).copy_(tensor)


def turned(tensor):
    """The tensor with its last two dimensions the other way round in memory."""
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < 2:
        return tensor
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def nudged(tensor, generator):
    """The tensor in float64, every element of it moved by one ulp of its dtype, up or down."""
    if not tensor.is_floating_point():
        return tensor.clone()
    wide = tensor.double()
    signs = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.int8).double() * 2 - 1
    exponent = torch.frexp(wide).exponent
    step = torch.ldexp(torch.ones_like(wide), exponent - 1) * torch.finfo(tensor.dtype).eps
    return torch.where(torch.isfinite(wide) & (wide != 0), wide + signs * step, wide)

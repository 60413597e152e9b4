"""Communications in blocks (`_coalescing_manager`), for async_scenario.py: kinds to be waited for, and steps of their own."""

import torch
import torch.distributed as dist


def given(rank, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(30 + rank))


def numbers(tensor):
    wide = tensor.detach().double()
    return [wide.max().item(), wide.min().item(), wide.mean().item(), wide.norm().item()]


def put_aside(rank, group, function, async_op):
    """Two calls in a block, which begin when it ends."""
    calls = []
    for k in (0, 2):
        given_one = given(rank + k, 6)
        out = given_one if function is dist.all_reduce else torch.zeros(12 if "gather" in function.__name__ else 3)
        function(*([out] if out is given_one else [out, given_one]), group=group, async_op=async_op)
        calls.append(out)
    return {"0:0": [calls[0]], "1:0": [calls[1]]}


def in_block(name, async_op=True, async_ops=True):
    def kind(rank, group):
        with dist._coalescing_manager(group=group, async_ops=async_ops) as manager:
            filled = put_aside(rank, group, getattr(dist, name), async_op)
        return manager.works, filled

    kind.__name__ = f"block_{name}{'' if async_op else '_plain'}{'' if async_ops else '_sync'}"
    return kind


IN_BLOCKS = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor")
BLOCKS = [in_block(name) for name in IN_BLOCKS]
# The end of the block waits.
SYNC_BLOCKS = [in_block(name, async_op, False) for name in IN_BLOCKS for async_op in (True, False)]


def device_block(rank, group):
    x = given(rank, 5)
    with dist._coalescing_manager(group=group, device=torch.device("cpu"), async_ops=True) as manager:
        dist.broadcast(x, 1, group=group)
    return manager.works, {0: [x]}


def device_block_put_aside(rank, group):
    with dist._coalescing_manager(group=group, device=torch.device("cpu"), async_ops=True) as manager:
        filled = put_aside(rank, group, dist.all_reduce, True)
    return manager.works, filled


# ---- steps: what each call of them brought ----


def used_up(tensor):
    seen = [numbers(tensor)]
    tensor.zero_()
    return seen


def two_groups(rank, debugger, other):
    """A call of another group goes on at once, and a block within a block ends first."""
    debugger.start()
    first, second, third = (given(rank + k, 5) for k in range(3))
    seen = {}
    with dist._coalescing_manager():
        dist.all_reduce(first)
        dist.all_reduce(second, group=other)
        seen["1:0"] = used_up(second)
        with dist._coalescing_manager(other):
            dist.all_reduce(third, group=other)
        seen["2:0"] = used_up(third)
    seen["0:0"] = used_up(first)
    debugger.stop()
    debugger.step()
    return seen


def one_by_one(rank, debugger, other):
    """Blocks that are open together, one of them empty, and a call behind them."""
    debugger.start()
    first, second, third = (given(rank + k, 5) for k in range(3))
    with dist._coalescing_manager(async_ops=True) as one:
        dist.all_reduce(first, async_op=True)
    with dist._coalescing_manager(async_ops=True) as empty:
        pass
    with dist._coalescing_manager(other, async_ops=True) as two:
        dist.all_reduce(second, group=other, async_op=True)
    two.wait()
    seen = {"1:0": used_up(second)}
    one.wait()
    empty.wait()
    seen["0:0"] = used_up(first)
    dist.all_reduce(third)
    seen["2:0"] = used_up(third)
    debugger.stop()
    debugger.step()
    return seen


def raised(rank, debugger, mixed, broken):
    """The calls of a block that raised never begin: those of the next block do."""
    debugger.start()
    tensors = [given(rank + k, 6) for k in range(3)]
    errors = []
    try:
        with dist._coalescing_manager(mixed):
            dist.all_reduce(tensors[0], group=mixed)
            dist.all_gather_into_tensor(torch.zeros(12), tensors[1], group=mixed)
    except RuntimeError as error:
        errors.append(str(error))
    with dist._coalescing_manager(mixed):
        dist.all_reduce(tensors[0], group=mixed)
    seen = {"0:0": None, "1:0": used_up(tensors[0])}
    try:
        with dist._coalescing_manager(broken, async_ops=True):
            dist.all_reduce(tensors[1], group=broken, async_op=True)
            raise KeyError("of the user")
    except KeyError as error:
        errors.append(str(error))
    seen["2:0"] = None
    try:
        with dist._coalescing_manager(mixed):
            dist.all_reduce(tensors[1], group=mixed)
            dist.all_reduce(tensors[1].double(), group=mixed)
    except (RuntimeError, ValueError) as error:
        errors.append(str(error))
    seen["3:0"] = seen["4:0"] = None
    dist.all_reduce(tensors[2])
    seen["5:0"] = used_up(tensors[2])
    debugger.stop()
    debugger.step()
    assert len(errors) == 3 and "same type" in errors[0] and errors[1] == "'of the user'", errors
    assert "Invalid" in errors[2] or "type" in errors[2], errors
    return seen

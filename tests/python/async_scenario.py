"""Two processes run every kind of asynchronous communication and wait for it in every way, each case in a step of the dump.

`async_scenario.py DIRECTORY`: the memory is written over right behind the wait. Each process writes DIRECTORY/seen{rank}.json,
[[case, {position of the argument: numbers of its tensors as they were when it was waited for}, same]]; `same`: the run
without the tool saw the same. "1:0" is position 0 of the call that has the number 1; None instead of numbers: it never came.
"""

import json
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from async_blocks import (
    BLOCKS,
    SYNC_BLOCKS,
    device_block,
    device_block_put_aside,
    given,
    in_block,
    numbers,
    one_by_one,
    raised,
    two_groups,
)
from forked import fork

WORLD = 2
LONG = timedelta(seconds=60)


class OwnWork(dist._Work):
    """Written in Python. What the inner work brings is not what this one gives: it doubles it when it is waited for."""

    def __init__(self, inner, tensors):
        super().__init__()
        self.inner, self.tensors, self.future = inner, tensors, None
        self.doubled = False
        self.lock = threading.Lock()

    def wait(self, timeout=None):
        self.inner.wait()
        super().is_completed()
        with self.lock:
            if not self.doubled:
                self.doubled = True
                for tensor in self.tensors:
                    tensor.mul_(2)
        return True

    def is_completed(self):
        # Gloo may say so of a receive only behind its wait().
        self.wait()
        return True

    def get_future(self):
        if self.future is None:
            self.wait()
            self.future = torch.futures.Future()
            self.future.set_result(self.tensors)
        return self.future


class OwnGroup(dist.ProcessGroup):
    """The same over gloo."""

    def __init__(self, rank, size):
        super().__init__(rank, size)
        self.gloo = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
        self.told = None  # list: within a block of the device

    def allreduce(self, tensors, options=None):
        return OwnWork(self.gloo.allreduce(tensors, options), tensors)

    def broadcast(self, tensors, options=None):
        return self._begin(self.gloo.broadcast, tensors, options)

    def allgather(self, outputs, tensors, options=None):
        return OwnWork(self.gloo.allgather(outputs, tensors, options), outputs[0])

    def recv(self, tensors, source, tag=0):
        return OwnWork(self.gloo.recv(tensors, source, tag), tensors)

    def send(self, tensors, to, tag=0):
        return OwnWork(self.gloo.send(tensors, to, tag), [])

    def allreduce_coalesced(self, tensors, options=None):
        return self._begin(self.gloo.allreduce_coalesced, tensors, options)

    def _begin(self, function, tensors, options):
        if self.told is not None:
            return self.told.append((function, tensors, options))
        return OwnWork(function(tensors, options), tensors)

    # As a device does it: what is told in between begins at the end.
    def _start_coalescing(self, device):
        self.told = []

    def _end_coalescing(self, device):
        ((function, tensors, options),) = self.told
        self.told = None
        return self._begin(function, tensors, options)

    def getBackendName(self):
        return "own"


# ---- what is communicated: (works, {position: tensors}) -----------------------------------------------------------------


def all_reduce(rank, group):
    x = given(rank, 5)
    return [dist.all_reduce(x, group=group, async_op=True)], {0: [x]}


def all_gather(rank, group):
    out = [torch.zeros(3) for _ in range(WORLD)]
    return [dist.all_gather(out, given(rank, 3), group=group, async_op=True)], {0: out}


def all_gather_into_tensor(rank, group):
    out = torch.zeros(6)
    return [dist.all_gather_into_tensor(out, given(rank, 3), group=group, async_op=True)], {0: [out]}


def reduce_scatter(rank, group):
    out = torch.zeros(3)
    return [dist.reduce_scatter(out, [given(rank, 3), given(rank + 2, 3)], group=group, async_op=True)], {0: [out]}


def reduce_scatter_tensor(rank, group):
    out = torch.zeros(3)
    return [dist.reduce_scatter_tensor(out, given(rank, 6), group=group, async_op=True)], {0: [out]}


def all_to_all_single(rank, group):
    out = torch.zeros(4)
    return [dist.all_to_all_single(out, given(rank, 4), group=group, async_op=True)], {0: [out]}


def all_to_all(rank, group):
    out = [torch.zeros(2) for _ in range(WORLD)]
    return [dist.all_to_all(out, [given(rank, 2), given(rank + 2, 2)], group=group, async_op=True)], {0: out}


def broadcast(rank, group):
    x = given(rank, 5)
    return [dist.broadcast(x, 1, group=group, async_op=True)], {0: [x]}


def reduce(rank, group):
    x = given(rank, 5)
    return [dist.reduce(x, 0, group=group, async_op=True)], {0: [x]} if rank == 0 else {}


def scatter(rank, group):
    out = torch.zeros(3)
    parts = [given(7, 3), given(8, 3)] if rank == 0 else None
    return [dist.scatter(out, parts, 0, group=group, async_op=True)], {0: [out]}


def gather(rank, group):
    out = [torch.zeros(3) for _ in range(WORLD)] if rank == 0 else None
    return [dist.gather(given(rank, 3), out, 0, group=group, async_op=True)], {1: out} if rank == 0 else {}


def irecv(rank, group):
    out, sent = torch.zeros(4), given(rank, 4)
    if group is not None:
        group._kept = sent
    works = [dist.isend(sent, 1 - rank, group=group), dist.irecv(out, 1 - rank, group=group)]
    # The send is waited for, too, and its buffer is free then.
    return works, {0: [out]}


def batch_isend_irecv(rank, group):
    out, sent = torch.zeros(4), given(rank, 4)
    peer = 1 - rank
    return dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, sent, peer, group), dist.P2POp(dist.irecv, out, peer, group)]
    ), {0: [sent, out]}


KINDS = (
    *(
        all_reduce,
        all_gather,
        all_gather_into_tensor,
        reduce_scatter,
        reduce_scatter_tensor,
        all_to_all_single,
        all_to_all,
    ),
    *(broadcast, reduce, scatter, gather, irecv, batch_isend_irecv, in_block("all_reduce", False)),
    *BLOCKS,
)
OWN_KINDS = (
    all_reduce,
    broadcast,
    all_gather,
    irecv,
    batch_isend_irecv,
    BLOCKS[0],
    device_block,
    device_block_put_aside,
)

# ---- how it is waited for: `use` reads the memory and writes it over ----------------------------------------------------


def wait(works, use):
    answers = [work.wait() for work in works]
    use()
    return answers


def helper(works):
    return wait_all(works)


def wait_all(works):
    return [work.wait() for work in works]


def elsewhere(works, use):
    answers = helper(works)
    use()
    return answers


def wait_timeout(works, use):
    answers = [work.wait(LONG) for work in works]
    use()
    return answers


def future_wait(works, use):
    for work in works:
        work.get_future().wait()
    use()


def future_value(works, use):
    for work in works:
        future = work.get_future()
        while not future.done():
            time.sleep(0.001)
        future.value()
    use()


def future_done(works, use):
    for work in works:
        future = work.get_future()
        while not future.done():
            time.sleep(0.001)
    use()


def then(works, use):
    (work,) = works
    work.get_future().then(lambda future: use()).wait()


def then_then(works, use):
    (work,) = works
    future = work.get_future()
    first = future.then(lambda f: f.value())
    first.then(lambda f: use()).wait()


def done_callback(works, use):
    (work,) = works
    over = threading.Event()
    work.get_future().add_done_callback(lambda future: (use(), over.set()))
    over.wait()


def collect(works, use):
    torch.futures.collect_all([work.get_future() for work in works]).wait()
    use()


def wait_for_all(works, use):
    torch.futures.wait_all([work.get_future() for work in works])
    use()


def poll(works, use):
    for work in works:
        while not work.is_completed():
            time.sleep(0.001)
    use()


def thread(works, use):
    waiter = threading.Thread(target=lambda: [work.wait() for work in works])
    waiter.start()
    waiter.join()
    use()


def thread_uses(works, use):
    waiter = threading.Thread(target=lambda: wait(works, use))
    waiter.start()
    waiter.join()


WAYS = (
    *(wait, elsewhere, wait_timeout, poll, thread, thread_uses),
    *(future_wait, future_value, future_done, then, then_then, done_callback, collect, wait_for_all),
)
# Gloo's works of these have no future, and are completed by their wait.
ONLY_WAIT = (
    *("reduce_scatter", "reduce_scatter_tensor", "irecv", "batch_isend_irecv"),
    *("block_all_gather_into_tensor", "block_reduce_scatter_tensor"),
)
ONE_WORK = ("then", "then_then", "done_callback")


def cases():
    for own in (False, True):
        for kind in OWN_KINDS if own else KINDS:
            for way in WAYS:
                no_wait = way is poll or way in WAYS[6:]
                if kind.__name__ in ONLY_WAIT and no_wait and not own:
                    continue
                if kind in (irecv, batch_isend_irecv) and way.__name__ in ONE_WORK:
                    continue
                yield own, kind, way
    yield from ((False, kind, wait) for kind in SYNC_BLOCKS)
    yield True, in_block("all_reduce", True, False), wait


def run_case(rank, group, kind, way, debugger=None):
    seen = {}
    if debugger:
        debugger.start()
    works, filled = kind(rank, group)

    def use():
        for position, tensors in filled.items():
            seen[position] = [numbers(tensor) for tensor in tensors]
            for tensor in tensors:
                tensor.zero_()

    answers = way(works, use)
    if debugger:
        debugger.stop()
        debugger.step()
    return seen, answers


UNSEEN = {
    "unseen": lambda x: None,  # the memory stays as it came
    "unseen_write": torch.Tensor.zero_,
    "unseen_foreach": lambda x: torch._foreach_zero_([x]),
    "unseen_out": lambda x: torch.add(x, 1, out=x),
    "unseen_data": lambda x: setattr(x, "data", torch.zeros(5)),
}


def unseen(rank, write, debugger):
    """Nobody waits for it, but it is there."""
    debugger.start()
    x = given(rank, 5)
    work = dist.all_reduce(x, async_op=True)
    dist.barrier()
    time.sleep(0.05)
    seen = numbers(x)
    write(x)
    debugger.stop()
    debugger.step()
    work.wait()
    return {0: [seen]}


def partly(rank, debugger):
    """The first message of a batch is used up before the second is waited for."""
    debugger.start()
    first, second = torch.zeros(4), torch.zeros(4)
    sent = [given(rank + k, 4) for k in (1, 2)]
    ops = [dist.P2POp(dist.isend, tensor, 1 - rank, tag=k) for k, tensor in enumerate(sent)]
    ops += [dist.P2POp(dist.irecv, out, 1 - rank, tag=k) for k, out in enumerate((first, second))]
    seen = [numbers(tensor) for tensor in sent]
    works = dist.batch_isend_irecv(ops)
    for work, out in zip(works[2:], (first, second)):
        work.wait()
        seen.append(numbers(out))
        out.zero_()
    for work in works[:2]:
        work.wait()
    debugger.stop()
    debugger.step()
    return {0: seen}


def train(rank, directory):
    from msprobe.pytorch import PrecisionDebugger

    store = dist.FileStore(os.path.join(directory, "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    dist.Backend.register_backend("own", lambda *_: OwnGroup(rank, WORLD), devices=["cpu"])
    own_group = dist.new_group([0, 1], backend="own")
    debugger = PrecisionDebugger(config_path=os.path.join(directory, "config.json"))
    found = []
    for own, kind, way in cases():
        group = own_group if own else None
        plain = run_case(rank, group, kind, way)
        seen, answers = run_case(rank, group, kind, way, debugger)
        name = f"{'own' if own else 'gloo'}-{kind.__name__}-{way.__name__}"
        found.append([name, seen, (seen, answers) == plain])
    found.append(["partly", partly(rank, debugger), True])
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    found.append(["two_groups", two_groups(rank, debugger, groups[0]), True])
    found.append(["one_by_one", one_by_one(rank, debugger, groups[0]), True])
    found.append(["raised", raised(rank, debugger, *groups), True])
    found += [[name, unseen(rank, write, debugger), True] for name, write in UNSEEN.items()]
    with open(os.path.join(directory, f"seen{rank}.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
    dist.barrier()
    os._exit(0)


def main():
    torch.set_num_threads(1)
    statuses = []
    for child in [fork(train, rank, sys.argv[1]) for rank in range(WORLD)]:
        statuses.append(os.waitpid(child, 0)[1])
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()

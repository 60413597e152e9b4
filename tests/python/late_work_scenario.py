"""A backend whose work fulfils its future before it says that it is completed, as gloo does for a moment."""

import sys
import time

import torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger


class LateWork(dist._Work):
    def __init__(self, tensors):
        super().__init__()
        self.future_ = torch.futures.Future()
        self.future_.set_result(tensors)
        self.completed_at = time.monotonic() + 0.05

    def is_completed(self):
        return time.monotonic() > self.completed_at

    def get_future(self):
        return self.future_

    def wait(self, timeout=None):
        return True


class LateGroup(dist.ProcessGroup):
    def allreduce(self, tensors, options=None):
        for tensor in tensors:
            tensor.mul_(2)
        return LateWork(tensors)

    def getBackendName(self):
        return "late"


dist.Backend.register_backend("late", lambda *_: LateGroup(0, 1), devices=["cpu"])
dist.init_process_group("late", rank=0, world_size=1, store=dist.HashStore())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
value = torch.ones(3)
hook = dist.all_reduce(value, async_op=True).get_future().then(lambda fut: fut.value()[0] + 1)
hook.wait()
debugger.stop()
debugger.step()

"""What megatron-core asks of torch.cuda on a machine that has none. Called before `import megatron`.

In its installed sources, literals such as `device='cuda'` are replaced by 'cpu' once: `stand_in.py SITE_PACKAGES` does that.
"""

import os
import re
import sys
from pathlib import Path


def pretend_cuda():
    os.environ.update(CUDA_DEVICE_MAX_CONNECTIONS="1", TORCHDYNAMO_DISABLE="1")
    import torch

    class Nothing:
        def __init__(self, *args, **kwargs):
            pass

        def __getattr__(self, name):
            return lambda *args, **kwargs: Nothing()

        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

    class Properties:
        major, minor, name, total_memory, multi_processor_count = 8, 0, "none", 1 << 34, 1

    class Generators:
        def __getitem__(self, device):  # a number, or "cpu"
            return torch.default_generator

    cuda = torch.cuda
    cuda.is_available = cuda.is_initialized = lambda: True
    cuda.device_count, cuda.current_device = lambda: 1, lambda: "cpu"
    for name in ("set_device", "synchronize", "empty_cache", "_lazy_init", "set_stream"):
        setattr(cuda, name, lambda *args, **kwargs: None)
    cuda._lazy_call = lambda f, **kwargs: f()
    for name in ("Event", "Stream", "current_stream", "stream", "device"):
        setattr(cuda, name, Nothing)
    cuda.default_generators = Generators()
    for module in (cuda, cuda.random):
        module.get_rng_state = lambda *args, **kwargs: torch.get_rng_state()
        module.set_rng_state = lambda state, *args, **kwargs: torch.set_rng_state(state)
        module.manual_seed = module.manual_seed_all = torch.default_generator.manual_seed
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"):
        setattr(cuda, name, lambda *args, **kwargs: 0)
    cuda.get_device_properties = lambda *args, **kwargs: Properties
    cuda.nvtx.range_push = cuda.nvtx.range_pop = lambda *args, **kwargs: None
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self


LITERAL = re.compile(
    r"""(device\s*=\s*|torch\.device\(\s*|\.to\(\s*)(['"])cuda\2|(['"])torch\.cuda\.(\w+Tensor)\3""", re.VERBOSE
)


def replace_literals(site):
    """Returns how many sources changed. A new file takes the place of the old one, which may be a link that others share."""
    changed = 0
    for path in Path(site, "megatron").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        new = LITERAL.sub(lambda m: f"{m[1]}{m[2]}cpu{m[2]}" if m[1] else f"{m[3]}torch.{m[4]}{m[3]}", text)
        if new != text:
            path.unlink()
            path.write_text(new, encoding="utf-8")
            changed += 1
    return changed


if __name__ == "__main__":
    print(replace_literals(sys.argv[1]), "sources changed")

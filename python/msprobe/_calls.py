"""Calls of a dump made again: a part of the process of acc_check (the module _replay is there already).

Nothing of the dump is executed: functions come from an allow-list of torch, tensors from their bytes or through
torch.load(weights_only=True).
"""

import ctypes
import functools
import gc
import importlib
import importlib.util
import json
import math
import os

import _compat
import _replay
from _replay import Call, Functions, Refused, load, natural, tensors_in, widen

torch = None  # set by the process

MOST_BYTES = 1 << 31  # of a tensor in float64
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
# The classes that a target may have are not between its smallest and largest number when one of them is "ignored".
IGNORED_CLASS = ("cross_entropy", "nll_loss")
TYPES = dict(
    zip(
        "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL C64".split(),
        "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64".split(),
    )
)


def import_torch():
    """Imports torch; nothing that it makes then is looked at as garbage, which it never is."""
    collects = gc.isenabled()
    gc.disable()
    try:
        module = importlib.import_module("torch")
        importlib.import_module("torch.overrides")
    finally:
        if collects:
            gc.enable()
    gc.freeze()
    return module


def keep_freed_memory():
    """Results of one call after the other come and go: their memory is not given back and fetched again each time."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option, size in ((M_MMAP_THRESHOLD, 32 << 20), (M_TRIM_THRESHOLD, 256 << 20)):
            libc.mallopt(option, size)


def read_bytes(path, offset, dtype, shape):
    """Reads a tensor whose place in its file the command has found."""
    tensor = torch.empty(shape, dtype=dtype_of(dtype))
    left = memoryview(tensor.view(-1).view(torch.uint8).numpy())
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while left.nbytes:
            got = os.preadv(file, [left], offset)
            if not got:
                raise Refused(f"{path} is shorter than it was")
            left, offset = left[got:], offset + got
    finally:
        os.close(file)
    return tensor


def read_tensor(source):
    """Reads a file of torch, or of one tensor in the safetensors format; the command has looked at it already."""
    if isinstance(source, list):
        return read_bytes(*source)
    path = source
    if not path.endswith(".safetensors"):
        return _replay.read_tensor(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        (entry,) = (value for key, value in json.loads(file.read(length)).items() if key != "__metadata__")
        numbers = bytearray(file.read())
    dtype = getattr(torch, TYPES[entry["dtype"]])
    if not numbers:
        return torch.zeros(entry["shape"], dtype=dtype)
    return torch.frombuffer(numbers, dtype=dtype).reshape(entry["shape"])


def own_functional():
    """torch.nn.functional as torch has it, whatever was put into the module of that name."""
    name = "torch.nn._functional_of_torch"
    spec = importlib.util.spec_from_file_location(name, torch.nn.functional.__file__)
    module = importlib.util.module_from_spec(spec)
    add = torch._C._add_docstr
    torch._C._add_docstr = lambda function, text: function  # they have theirs
    try:
        spec.loader.exec_module(module)
    finally:
        torch._C._add_docstr = add
    return module


class LabFunctions(Functions):
    """As Functions; what a program of the user put in the place of a function of torch may be called, too."""

    def __init__(self):
        super().__init__()
        own = torch.overrides.get_overridable_functions().values()
        own = {id(function) for functions in own for function in functions}
        places = {"functional": torch.nn.functional, "torch": torch, "tensor": torch.Tensor}
        for owner, place in places.items():
            found = self._walk([place], lambda f: id(f) in own)
            for name, function in found.items():
                self._allowed[owner].setdefault(name, function)
        self._functional = None

    def find(self, owner, name):
        """Returns the function of this name if it may be called again."""
        function = self._allowed[owner].get(name)
        if function is None:
            raise Refused(f"torch has no function {name} that may be called again")
        return function

    def find_own(self, owner, name):
        """The same of torch itself, by which the truth is computed."""
        function = self.find(owner, name)
        module = getattr(function, "__module__", None)
        if module is None or module.partition(".")[0] in ("torch", "builtins"):
            return function
        if owner == "functional":
            self._functional = self._functional or own_functional()
            function = getattr(self._functional, name, None)
        else:
            function = _compat.builtin_of(owner, name)
        if function is None:
            raise Refused(f"the place of torch's {name} is taken, and its own cannot be found")
        return function


def dtype_of(text):
    """The dtype of this name."""
    dtype = getattr(torch, text.rpartition(".")[2], None)
    if not isinstance(dtype, torch.dtype):
        raise Refused(f"torch has no dtype {text}")
    return dtype


def generated(leaf, generator, api):
    """Makes a tensor as a dump describes it: in its range, with the infinities and NaN that the range shows."""
    dtype, shape = dtype_of(leaf["dtype"]), tuple(leaf["shape"])
    low, high = leaf["min"], leaf["max"]
    if math.prod(shape) * 8 > MOST_BYTES:
        raise Refused(f"a tensor of the shape {list(shape)} is too large")
    if 0 in shape:
        return torch.zeros(shape, dtype=dtype)
    if dtype.is_complex:
        raise Refused("a dump without values does not tell the range of complex numbers")
    if dtype == torch.bool:
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        if api in IGNORED_CLASS:
            low = max(low, 0)
        return torch.randint(int(low), int(high) + 1, shape, generator=generator, dtype=torch.int64).to(dtype)
    info = torch.finfo(dtype)
    if math.isnan(high) and math.isnan(low):
        return torch.full(shape, math.nan, dtype=dtype)
    ends = [min(max(end, info.min), info.max) for end in (low, high)]
    made = torch.rand(shape, generator=generator, dtype=torch.float64) * (ends[1] - ends[0]) + ends[0]
    made = made.clamp(info.min, info.max).to(dtype)
    flat = made.view(-1)
    for place, end in ((0, leaf["first"]), (-1, leaf["last"])):  # both ends are there, and the infinities
        if not math.isnan(end):
            flat[place] = end
    if leaf["nan"] and flat.numel() > 2:
        flat[1] = math.nan
    return made


@functools.cache
def handler_of(path, name):
    """A function of a file of the user."""
    spec = importlib.util.spec_from_file_location(f"msprobe_output_handler_{abs(hash(path))}", path)
    if spec is None:
        raise Refused(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise Refused(f"{path} has no function {name}")
    return function


def handled(api, path, name, output, args, kwargs):
    """An output as a function of the user changes it; without an answer it stays as it is."""
    try:
        changed = handler_of(path, name)(api, output, args, kwargs)
    except (ImportError, NameError, SyntaxError, *_replay.REFUSALS) as error:
        raise Refused(f"{path}:{name} failed ({type(error).__name__}: {str(error)[:200]})") from None
    return output if changed is None else changed


class LabCall(Call):
    """A function and its arguments, from files or made up."""

    def __init__(self, functions, spec, seed):
        self.name, self.in_place, self.spec, self.module = spec["function"], spec["in_place"], spec, False
        self.function = functions.find(spec["owner"], self.name)
        self.truth = functions.find_own(spec["owner"], self.name)
        self._generator = torch.Generator().manual_seed(seed)
        self.tensors, self.leaves = self._tensors(spec["tensors"])
        self.gradients = self._tensors(spec["gradients"])[0]
        self.draws = False

    def _tensors(self, entries):
        tensors, leaves = load([entry for entry in entries if not isinstance(entry[1], dict)], read_tensor)
        for key, leaf, requires_grad in sorted(entries, key=lambda entry: natural(entry[0])):
            if isinstance(leaf, dict):
                tensors[key] = generated(leaf, self._generator, self.name)
                if requires_grad and tensors[key].is_floating_point():
                    leaves.add(key)
        return tensors, leaves

    def run(self, tensors, wide=True):
        """Calls the function with `tensors`, which it may overwrite; `wide`: in float64 on the CPU."""
        self.device, self.wide = next((t.device for t in tensors.values()), torch.device("cpu")), wide
        function = self.truth if wide else self.function
        if wide and self.spec["owner"] == "tensor" and self.name in _replay.CASTS:
            self._refuse_choice()
            function = torch.Tensor.double
        state = torch.get_rng_state()
        args = [self._value(v, tensors) for v in self.spec["args"]]
        kwargs = {name: self._value(v, tensors) for name, v in self.spec["kwargs"].items()}
        result = function(*args, **kwargs)
        self.draws = self.draws or not torch.equal(state, torch.get_rng_state())
        result = args[0] if result is None and self.in_place and args else result
        handler = self.spec.get("handlers", {}).get("golden" if wide else "target")
        return result if handler is None else handled(*handler, result, args, kwargs)

    def _value(self, v, tensors):
        if isinstance(v, dict) and not self.wide:
            ((kind, value),) = v.items()
            if kind == "torch" and isinstance(getattr(torch, value, None), torch.dtype):
                return getattr(torch, value)
            if kind == "device":
                return self.device
        return super()._value(v, tensors)


def shake(jitter, tensor):
    """Widens a tensor and moves its elements by rounding errors."""
    return jitter("", widen(tensor))


def gradients_of(outs, leaves, given):
    """As torch.autograd.grad, without what it does for symbolic shapes: that imports as much as all calls of a step cost."""
    run = getattr(torch.autograd.graph, "_engine_run_backward", None)
    plain = all(type(t) is torch.Tensor for t in (*outs, *leaves, *given))
    if not leaves:
        return ()
    if run is None or not plain or any(a.shape != b.shape for a, b in zip(outs, given)):
        return torch.autograd.grad(outs, leaves, given, allow_unused=True)
    return run(tuple(outs), tuple(given), False, False, tuple(leaves), allow_unreachable=True, accumulate_grad=False)


class Pass:
    """One execution of a call, forward and backward."""

    def __init__(self, call, change, backward, wide):
        leaves, inputs = {}, {}
        for key, tensor in call.tensors.items():
            changed = change(tensor).detach()
            # Another dtype has memory of its own already.
            fresh = type(changed) is torch.Tensor and changed.dtype != tensor.dtype
            changed = changed if fresh else changed.clone()
            if backward and key in call.leaves:
                leaves[key] = changed.requires_grad_()
                changed = leaves[key].clone()  # so that the function may write into it
            inputs[key] = changed
        with torch.set_grad_enabled(backward):
            self.result = call.run(inputs, wide)
        self.grads = self._backward(call, leaves, change) if backward else {}

    def _backward(self, call, leaves, change):
        outs, given = [], []
        free = [t for t in tensors_in(self.result) if t.requires_grad]
        for key, gradient in call.gradients.items():
            at = next((i for i, out in enumerate(free) if out.shape == gradient.shape), None)
            if at is None:
                raise Refused(f"its forward has no result of the shape {list(gradient.shape)} of {key}")
            outs.append(free.pop(at))
            given.append(change(gradient).to(outs[-1].dtype))
        if not outs:
            return {}
        return dict(zip(leaves, gradients_of(outs, list(leaves.values()), given)))


def parts_of(result):
    """The results of a function, those of containers one by one."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)) and not isinstance(result, torch.Size):
        return [part for piece in result for part in (parts_of(piece) if isinstance(piece, (list, tuple)) else [piece])]
    return [result]

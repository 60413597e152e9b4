"""Records what every module, function and parameter of a training sees, by PyTorch's own means and without msprobe.

It has two ways, each for a process of its own:

`watch` changes nothing of the graph of autograd: values of functions and modules, the gradients of functions (hooks of the last
node), gradients of parameters (hooks before the accumulator adds), collectives, and the whole gradient of each output and argument of
a module, also those that pass by another way.

`split` puts a view before and after each module, as register_full_backward_hook() does with its own node, so that the gradient
of an argument is what this call's argument got and nothing else. That changes the order in which gradients are summed up.
"""

import contextlib
import functools
import threading
from collections import Counter, defaultdict
from pathlib import Path

import torch
import torch.distributed as dist
from figures import item
from nesting import replaced, tensors_of
from torch import nn
from torch.nn.parameter import is_lazy

HERE = Path(__file__).resolve().parent
# Arguments that a communication only fills, by position or name: nothing is known of them before it.
_FILLED = {
    **{f: (0, "tensor") for f in ("recv", "irecv", "scatter")},
    **{f: (0, "tensor_list") for f in ("all_gather",)},
    **{
        f: (0, "output")
        for f in ("reduce_scatter", "all_to_all_single", "reduce_scatter_tensor", "reduce_scatter_single")
    },
    **{f: (0, "output_tensor_list") for f in ("all_to_all",)},
    **{f: (0, "output_tensor") for f in ("all_gather_into_tensor", "_all_gather_base", "all_gather_single")},
    "_reduce_scatter_base": (0, "output"),
    "gather": (1, "gather_list"),
}
_Compiled = torch._dynamo.eval_frame.OptimizedModule


def _differentiable(tensor):
    return tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex()) and not tensor.is_inference()


def _drops_nothing(name, args, kwargs):
    """A dropout with probability 0 has no entry of its backward, as in the earlier tool."""
    return "dropout" in name and (args[1] if len(args) > 1 else kwargs.get("p", 0.5)) == 0


def _output(result):
    """One result is a list of one; several are a list; a namedtuple is an object."""
    if isinstance(result, tuple) and not isinstance(result, torch.Size):
        return item(result if hasattr(result, "_fields") else list(result))
    return item([result])


class Recorder:
    """`begin(models)` and `end()` around each step; `steps` are lists of (name, entry)."""

    def __init__(self, way):
        self.way = way
        self.steps = []
        self.active = False
        self._local = threading.local()
        self._lock = threading.RLock()
        self._names = {}
        self._hooked = defaultdict(list)  # accumulators live as long as somebody holds them
        self._patches = []
        self._read_functions()

    # ---- steps ---------------------------------------------------------------------------------------------------
    def begin(self, models):
        several = isinstance(models, (list, tuple))
        names, owners = {}, {}
        for i, root in enumerate(models if several else [models] if models is not None else []):
            inside_compiled = set()
            for path, module in root.named_modules(remove_duplicate=False):
                if module is root or id(module) in owners:
                    continue
                if isinstance(module, _Compiled):  # a region that is left alone
                    inside_compiled |= {id(m) for m in module._orig_mod.modules()}
                kind = type(getattr(module, "_orig_mod", module)).__name__
                if isinstance(module, torch.jit.ScriptModule) or kind == "FullyShardedDataParallel":
                    continue
                name = ".".join(["Module", *([str(i)] if several else []), path.replace("._orig_mod", ""), kind])
                # A module keeps the name that it had first: lazy modules change their class.
                owners[id(module)] = self._names.get(id(module), (name, module))
                if id(module) not in inside_compiled:
                    names[id(module)] = owners[id(module)]
        self._names = names
        self._entries, self._calls, self._modules = [], Counter(), []
        self._fired, self._grads = defaultdict(Counter), {}
        if isinstance(models, nn.Module):
            owners[id(models)] = (f"Module.{type(models).__name__}", models)
        self._called, self._shares = set(), []
        if not any(type(module).__name__ == "FullyShardedDataParallel" for _, module in owners.values()):
            for name, module in owners.values():  # those of FSDP1 have another shape until their forward
                self._watch_parameters(name, module)
        self.steps.append(self._entries)
        self.active = True

    def end(self):
        self.active = False
        for gradients in self._modules:
            gradients.note_changes()
        self._drop_of_others()

    def _drop_of_others(self):
        """A parameter belongs to the modules that were called; where none was, to the first that has it."""
        called = {parameter for _, _, parameter, module in self._shares if module in self._called}
        first = {}
        for entry, name, parameter, module in self._shares:
            if module not in self._called and (parameter in called or first.setdefault(parameter, module) != module):
                del entry["gradients"][name]
        self._entries[:] = [(n, e) for n, e in self._entries if e.get("gradients", True)]

    def add(self, name, entry):
        with self._lock:
            self._entries.append((name, entry))
        return entry

    def _number(self, name):
        with self._lock:
            number = self._calls[name]
            self._calls[name] += 1
        return number

    @contextlib.contextmanager
    def _inside(self):
        """What runs in here is the recorder's own, or part of what is being recorded."""
        before = getattr(self._local, "depth", 0)
        self._local.depth = before + 1
        try:
            yield
        finally:
            self._local.depth = before

    def _looking(self):
        return self.active and not getattr(self._local, "depth", 0) and not torch.compiler.is_compiling()

    # ---- functions -----------------------------------------------------------------------------------------------
    def _read_functions(self):
        self._functions, prefix, place = [], None, None
        for line in (HERE / "functions.txt").read_text().splitlines():
            if line.startswith("["):
                prefix, place = line[1:-1].split()
                continue
            self._functions += [(prefix, place, name) for name in line.split()]

    def patch(self):
        """Puts wrappers in the place of the functions."""
        places = {
            "torch.nn.functional": nn.functional,
            "torch.Tensor": torch.Tensor,
            "torch": torch,
            "torch._VF": torch._VF,
            "torch.distributed": dist,
        }
        known = {}
        for prefix, place, name in self._functions:
            *way, last = name.split(".")
            owner = functools.reduce(getattr, way, places[place])
            original = getattr(owner, last, None)
            if original is None:
                continue
            wrapper = known.get(id(original))
            if wrapper is None:
                make = self._collective if prefix == "Distributed" else self._function
                wrapper = known[id(original)] = make(f"{prefix}.{name.split('.')[-1]}", original)
            self._put(owner, last, wrapper)
            if (
                prefix == "Torch"
                and torch._VF.__dict__.get(last, getattr(torch._C._VariableFunctions, last, None)) is original
            ):
                self._put(torch._VF, last, wrapper)
            if prefix == "Distributed" and getattr(dist.distributed_c10d, last, None) is original:
                self._put(dist.distributed_c10d, last, wrapper)
        self._put(nn.Module, "__call__", self._module_call(nn.Module.__call__))
        if dist.is_available():
            self._patch_works()
        self._put(torch, "compile", self._compiling(torch.compile))
        for owner, name in ((torch.jit, "script"), (torch.jit, "trace")):
            self._put(owner, name, self._unpatched(getattr(owner, name)))

    def _put(self, owner, name, value):
        inherited = name not in vars(owner) if isinstance(owner, type) else False
        self._patches.append((owner, name, value, None if inherited else getattr(owner, name)))
        setattr(owner, name, value)

    def _unpatched(self, function):
        """Compilers of TorchScript must see the functions themselves."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            for owner, name, _, original in self._patches:
                delattr(owner, name) if original is None else setattr(owner, name, original)
            try:
                return function(*args, **kwargs)
            finally:
                for owner, name, value, _ in self._patches:
                    setattr(owner, name, value)

        return call

    def _compiling(self, compile_):
        """What is compiled is left alone, also where its code is run by Python."""

        @functools.wraps(compile_)
        def call(model=None, **options):
            if model is None:
                return lambda function: call(function, **options)
            compiled = compile_(model, **options)
            if isinstance(compiled, nn.Module):
                return compiled

            @functools.wraps(compiled)
            def run(*args, **kwargs):
                with self._inside():
                    return compiled(*args, **kwargs)

            return run

        return call

    def _function(self, name, original):
        recorder = self

        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            if torch.compiler.is_compiling() or not recorder._looking():
                return original(*args, **kwargs)
            return recorder._call_function(name, original, args, kwargs)

        return wrapper

    def _call_function(self, name, original, args, kwargs):
        with self._inside():
            called = f"{name}.{self._number(name)}"
            entry = {"input_args": item(list(args)), "input_kwargs": item(dict(kwargs))["dict"]}
            if name == "Tensor.stride":  # of memory that a collective is writing, too
                entry["input_args"] = {"any": "no element is read"}
            try:
                result = original(*args, **kwargs)
            except BaseException:
                self.add(f"{called}.forward", {**entry, "raised": True})
                raise
            entry["output"] = _output(result)
            self.add(f"{called}.forward", entry)
            if not _drops_nothing(name, args, kwargs):
                self._watch_function(called, result)
        return result

    def _watch_function(self, called, result):
        """The last node of a function: gradients of its outputs, and those it gives to its inputs."""
        outputs = [t for t in tensors_of(result) if _differentiable(t)]
        if not outputs or outputs[0].grad_fn is None or not torch.is_grad_enabled():
            return
        single = len(outputs) == 1

        def after(given, got):
            with self._inside():
                entry = {"input": item(list(got)), "output": item(list(given)), "single": single}
                self.add(f"{called}.backward", entry)

        outputs[0].grad_fn.register_hook(after)

    # ---- communication -------------------------------------------------------------------------------------------
    def _collective(self, name, original):
        recorder, filled = self, _FILLED.get(name.split(".")[1])

        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            if not recorder._looking():
                return original(*args, **kwargs)
            with recorder._inside():
                called = f"{name}.{recorder._number(name)}"
                entry = {"input_args": item(list(args)), "input_kwargs": item(dict(kwargs))["dict"]}
                if filled and len(entry["input_args"]) > filled[0]:
                    entry["input_args"][filled[0]] = None
                if filled and filled[1] in entry["input_kwargs"]:
                    entry["input_kwargs"][filled[1]] = None
                result = original(*args, **kwargs)

            def arrived():
                with recorder._inside():
                    entry["output"] = item([*args, *kwargs.values()])
                    if name.endswith("isend"):
                        entry["output"][0] = None

            if result is None or not hasattr(result, "wait"):
                arrived()
            else:
                recorder._waiting[id(result)] = (result, arrived)
            recorder.add(f"{called}.forward", entry)
            return result

        return wrapper

    def _patch_works(self):
        self._waiting = {}
        recorder = self
        for kind in {dist.Work, *dist.Work.__subclasses__()}:
            if "wait" not in vars(kind):
                continue
            original = kind.wait

            def wait(work, *args, original=original, **kwargs):
                done = original(work, *args, **kwargs)
                _, arrived = recorder._waiting.pop(id(work), (None, None))
                if arrived:
                    arrived()
                return done

            kind.wait = wait

    # ---- modules -------------------------------------------------------------------------------------------------
    def _module_call(self, original):
        recorder = self

        def __call__(module, *args, **kwargs):
            if torch.compiler.is_compiling() or not recorder._looking() or id(module) not in recorder._names:
                return original(module, *args, **kwargs)
            return recorder._call_module(original, module, args, kwargs)

        return __call__

    def _call_module(self, original, module, args, kwargs):
        name = self._names[id(module)][0]
        number = self._number(name)
        entry, gradients = {}, _ModuleGradients(self, f"{name}.backward.{number}")

        def last_before_forward(args, kwargs):
            self._called.add(id(module))
            self._watch_parameters(name, module)
            with self._inside():
                entry.update(input_args=item(list(args)), input_kwargs=item(dict(kwargs))["dict"])
                return gradients.of_inputs(args, kwargs)

        taken = []

        def take_away():
            taken or handle.remove()
            taken.append(True)

        def once(_, args, kwargs):  # not at the calls of the same module that its forward makes
            if taken:
                return None
            take_away()
            return last_before_forward(args, kwargs)

        handle = module.register_forward_pre_hook(once, with_kwargs=True)
        try:
            with self._inside() if isinstance(module, _Compiled) else contextlib.nullcontext():
                result = original(module, *args, **kwargs)
        except BaseException:
            take_away()
            entry["raised"] = True
            self.add(f"{name}.forward.{number}", entry)
            raise
        take_away()
        with self._inside():
            entry["output"] = _output(result)
            entry["parameters"] = {n: item(p) for n, p in module.named_parameters(recurse=False)}
            self.add(f"{name}.forward.{number}", entry)
            return gradients.of_outputs(result)

    def _watch_parameters(self, name, module):
        for parameter_name, parameter in module._parameters.items():
            if (
                parameter is None
                or is_lazy(parameter)
                or not parameter.requires_grad
                or not parameter.is_leaf
                or not parameter.numel()
            ):
                continue  # without elements it is away (ZeRO 3), and an accumulator would remember that
            with self._inside(), torch.enable_grad():
                try:
                    accumulator = parameter.view_as(parameter).grad_fn.next_functions[0][0]
                except (RuntimeError, AttributeError):
                    continue
            hooked = self._hooked[id(module), parameter_name]
            if any(accumulator is known for known in hooked):
                continue
            hooked.append(accumulator)
            accumulator.register_prehook(functools.partial(self._accumulates, name, module, parameter_name, parameter))

    def _accumulates(self, name, module, parameter_name, parameter, gradients):
        """Before the accumulator adds: what it will make of `.grad`."""
        step = self._fired
        if not self.active or gradients[0] is None:
            return
        with self._inside(), torch.no_grad():
            number = step[id(module)][parameter_name]
            step[id(module)][parameter_name] += 1
            gradient, before = gradients[0], parameter.grad
            if before is not None:
                gradient = before + gradient
            key = (id(module), number)
            if key not in self._grads:
                self._grads[key] = self.add(f"{name}.parameters_grad.{number}", {"gradients": {}})
            self._grads[key]["gradients"][parameter_name] = [item(gradient)]
            self._shares.append((self._grads[key], parameter_name, id(parameter), id(module)))


class _ModuleGradients:
    """What comes to the outputs of one call of a module, and what it gives to its arguments."""

    def __init__(self, recorder, name):
        self.recorder, self.name = recorder, name
        self.entry, self.seen = None, set()
        self.got, self.gave, self.views = [], [], {}
        recorder._modules.append(self)

    def _record(self, side, position, gradient):
        with self.recorder._inside():
            if not self.recorder.active:
                return
            if self.entry is None or (side, position) in self.seen:  # the next pass through the same graph
                self.seen = set()
                self.entry = {"input": [None] * len(self.got), "output": [None] * len(self.gave), "sides": self.sides}
                self.recorder.add(self.name, self.entry)
            self.seen.add((side, position))
            self.entry[side][position] = item(gradient)

    def note_changes(self):
        """Of an argument that was changed in place afterwards, the view is out of the graph: nothing is known."""
        if self.entry is not None:
            changed = [p for p, (view, version) in self.views.items() if view._version != version]
            self.entry["unknown"] = [p for p in changed if ("output", p) not in self.seen]

    def _hook(self, tensor, side, position, when=lambda: True):
        """Sees the gradient as the tensor's node gets it: after the hooks of the tensor itself, also later ones."""

        def see(gradient):
            if gradient is not None and when():
                self._record(side, position, gradient)

        if tensor.grad_fn is None:
            tensor.register_hook(see)
        else:
            number = tensor.output_nr
            tensor.grad_fn.register_prehook(lambda gradients: see(gradients[number]))

    def of_inputs(self, args, kwargs):
        self.sides = {"positional": len(tensors_of(args))}
        self.gave = [*tensors_of(args), *tensors_of(kwargs)]
        split = self.recorder.way == "split" and torch.is_grad_enabled()
        count, records = iter(range(len(self.gave))), torch.is_grad_enabled()

        def change(tensor):
            position = next(count)
            if not records or not _differentiable(tensor):
                return tensor
            if split:
                tensor = tensor.view_as(tensor)
                self.views[position] = (tensor, tensor._version)
            self._hook(tensor, "output", position)
            return tensor

        return replaced(args, change), replaced(kwargs, change)

    def of_outputs(self, result):
        self.got = tensors_of(result)
        split = self.recorder.way == "split" and torch.is_grad_enabled()
        count, records = iter(range(len(self.got))), torch.is_grad_enabled()

        def change(tensor):
            position = next(count)
            if not records or not _differentiable(tensor):
                return tensor
            if not split:
                self._hook(tensor, "input", position)
                return tensor
            view = tensor.view_as(tensor)
            version = view._version
            # A change in place takes the view's node out of the graph; then the whole gradient is all that can be seen.
            self._hook(tensor, "input", position, when=lambda: view._version != version)
            self._hook(view, "input", position)
            return view

        changed = replaced(result, change)
        return changed if split else result

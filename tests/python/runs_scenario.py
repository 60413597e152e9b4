"""Many ways to run a model, each without and then with the tool in one process.

`runs_scenario.py DIRECTORY`: each scenario is one step of the dump below DIRECTORY/dump; DIRECTORY/result.json says for each
whether losses, gradients, parameters and the state of the random numbers are equal bit by bit.
"""

import asyncio
import contextlib
import copy
import gc
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import random
import sys
import threading
import warnings
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


class Recording:
    def __init__(self, debugger=None):
        self.debugger = debugger

    @contextlib.contextmanager
    def __call__(self, model):
        if self.debugger:
            self.debugger.start(model=model)
        try:
            yield
        finally:
            if self.debugger:
                self.debugger.stop()


def net(width=8):
    return nn.Sequential(
        nn.Linear(width, width), nn.Tanh(), nn.Sequential(nn.Linear(width, width), nn.ReLU()), nn.Linear(width, 2)
    )


def state(*models):
    return [t for m in models for p in m.parameters() for t in (p, p.grad)]


# ---- graphs -------------------------------------------------------------------------------------------------------------


def nested_checkpoints(recording):
    class Block(nn.Module):
        def __init__(self, reentrant):
            super().__init__()
            self.a, self.b, self.reentrant = nn.Linear(8, 8), nn.Linear(8, 8), reentrant

        def inner(self, x):
            return torch.tanh(self.b(x))

        def outer(self, x):
            return checkpoint(self.inner, torch.sigmoid(self.a(x)), use_reentrant=self.reentrant) * 2

        def forward(self, x):
            return checkpoint(self.outer, x, use_reentrant=self.reentrant)

    model = nn.Sequential(nn.Linear(8, 8), Block(False), nn.Dropout(0.3), Block(True), nn.Linear(8, 2))
    with recording(model):
        loss = model(torch.randn(4, 8)).pow(2).sum()
        loss.backward()
        after = torch.relu(loss.detach())
    return [loss, after, *state(model)]


def in_place_and_views(recording):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.act = nn.Linear(8, 8), nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.act(self.lin(x)) * 1
            y[:, 0] *= 2
            y = y.view(2, 16).t()
            y.add_(1)
            a, b = y.chunk(2)
            return torch.cat([a.transpose(0, 1).contiguous(), b.mul(3).t()], 1)

    model = nn.Sequential(Odd(), nn.Flatten(), nn.Linear(16, 2))
    with recording(model):
        loss = model(torch.randn(4, 8)).pow(2).sum()
        loss.backward()
    return [loss, *state(model)]


def gradient_penalty(recording):
    model, x = net(), torch.randn(4, 8, requires_grad=True)
    with recording(model):
        out = model(x).pow(2).sum()
        (grad,) = torch.autograd.grad(out, x, create_graph=True)
        loss = out + (grad.norm(2, dim=1) - 1).pow(2).mean()
        loss.backward()
        hessian = torch.autograd.functional.hessian(lambda t: model(t).pow(2).sum(), torch.ones(1, 8))
    return [loss, grad, x.grad, hessian, *state(model)]


def hooks_of_the_user(recording):
    model, calls = net(), []
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    model[0].register_forward_hook(lambda module, args, out: out + 1)
    model[2].register_forward_hook(lambda module, args, kwargs, out: out * 2, with_kwargs=True)
    model[2][0].register_full_backward_hook(lambda module, gi, go: (gi[0] * 3,))
    model[1].register_full_backward_pre_hook(lambda module, go: (go[0] * 0.5,))
    model[3].weight.register_hook(lambda grad: grad * 2)
    model[3].bias.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.sum().item()))
    model._register_state_dict_hook(lambda module, d, prefix, local: calls.append(len(d)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model[2][1].register_backward_hook(lambda module, gi, go: calls.append("legacy"))
    everywhere = nn.modules.module.register_module_forward_hook(lambda module, args, out: calls.append("global"))
    with recording(model):
        x = torch.randn(4, 8)
        y = model(x)
        y.register_hook(lambda grad: grad + 1)
        torch.autograd.graph.register_multi_grad_hook([y], lambda grads: calls.append("multi"))
        y.pow(2).sum().backward()
        model.state_dict()
    everywhere.remove()
    return [y, *state(model), torch.tensor([len(str(calls))])]


def saved_tensors(recording):
    model = net()
    with recording(model):
        with torch.autograd.graph.save_on_cpu():
            loss = model(torch.randn(4, 8)).pow(2).sum()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            loss = loss + model(torch.randn(4, 8)).exp().sum()
        loss.backward()
    return [loss, *state(model)]


# ---- modes and transforms -----------------------------------------------------------------------------------------------


def modes_of_the_user(recording):
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(getattr(function, "__name__", "?"))
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    model = net()
    with recording(model):
        with Functions():
            loss = model(torch.randn(4, 8)).pow(2).sum()
        with Dispatch():
            loss = loss + model(torch.randn(4, 8)).exp().sum()
            loss.backward()
        with torch.device("cpu"):
            torch.ones(2)
    return [loss, *state(model), torch.frombuffer(hashlib.sha256(repr(seen).encode()).digest(), dtype=torch.uint8)]


def mixed_precision(recording):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with recording(model):
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(torch.randn(4, 8))
                loss = out.float().pow(2).sum()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    return [out, loss, *state(model)]


def transforms(recording):
    model = net()
    params = dict(model.named_parameters())

    def loss_of(params, x):
        return torch.func.functional_call(model, params, (x,)).pow(2).sum()

    x = torch.randn(4, 8)
    with recording(model):
        single = torch.func.grad(loss_of)(params, x)
        each = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(params, x)
        _, tangent = torch.func.jvp(lambda t: F.linear(t, torch.ones(8, 8)), (x,), (torch.ones_like(x),))
        jacobian = torch.func.jacrev(lambda t: model(t))(x[0])
    return [*single.values(), *each.values(), tangent, jacobian]


def without_gradients(recording):
    model, x = net(), torch.randn(4, 8)
    with recording(model):
        with torch.no_grad():
            a = model(x)
        with torch.inference_mode():
            b = model(x).clone()
        with torch.set_grad_enabled(False):
            c = model(x)
        model.requires_grad_(False)
        d = model(x)
        model[3].requires_grad_(True)
        model(x).sum().backward()
    return [a, b, c, d, *state(model)]


# ---- optimizers ---------------------------------------------------------------------------------------------------------


def optimizers(recording):
    out = []
    model = net()
    makers = [
        lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
        lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
        lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
        lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
    ]
    with recording(model):
        for make in makers:
            optimizer = make(model.parameters())

            def closure(optimizer=optimizer):
                optimizer.zero_grad()
                loss = model(torch.ones(4, 8)).pow(2).sum()
                loss.backward()
                nn.utils.clip_grad_value_(model.parameters(), 0.5)
                return loss

            out.append(optimizer.step(closure))
    return [*out, *state(model)]


def two_optimizers(recording):
    generator, judge = net(), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    one, two = torch.optim.Adam(generator.parameters(), 0.01), torch.optim.Adam(judge.parameters(), 0.01)
    with recording([generator, judge]):
        for _ in range(2):
            two.zero_grad()
            fake = generator(torch.randn(4, 8))
            loss = F.softplus(-judge(torch.randn(4, 2))).mean() + F.softplus(judge(fake.detach())).mean()
            loss.backward()
            two.step()
            one.zero_grad()
            F.softplus(-judge(fake)).mean().backward()
            one.step()
    return state(generator, judge)


def accumulated_gradients(recording):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        with recording(model):
            model(torch.randn(4, 8)).pow(2).sum().backward()
    with recording(model):
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    return [total, *state(model)]


# ---- models -------------------------------------------------------------------------------------------------------------


def unusual_models(recording):
    from torch.nn.utils import parametrizations

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(12, 8), nn.Linear(8, 12, bias=False)
            self.head.weight = self.embed.weight
            self.normed = parametrizations.weight_norm(nn.Linear(8, 8))
            self.spectral = parametrizations.spectral_norm(nn.Linear(8, 8))
            self.shared = nn.ModuleList([self.normed, nn.Linear(8, 8)])
            self.parallel = nn.DataParallel(nn.Linear(8, 8))

        def forward(self, tokens):
            x = self.embed(tokens)
            for module in (self.normed, self.spectral, *self.shared, self.parallel):
                x = x + module(x)
            return self.head(x)

    model = Tied()
    outside = nn.Linear(8, 8)
    tokens = torch.randint(0, 12, (5,))
    with recording(model):
        part = model.normed(outside(torch.randn(3, 8)))  # outside of the root's forward
        loss = F.cross_entropy(model(tokens), tokens) + part.sum()
        loss.backward()
    return [loss, *state(model)]


def copies(recording):
    model = net()
    average = torch.optim.swa_utils.AveragedModel(model)
    x = torch.randn(4, 8)
    with recording(model):
        twin = copy.deepcopy(model)
        sent = pickle.loads(pickle.dumps(model))
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        model(x).sum().backward()
        average.update_parameters(model)
        outs = [m(x) for m in (twin, sent, average)]
        twin.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
        outs.append(twin(x))
    return [*outs, *state(model, average)]


def replaced_modules(recording):
    model, x = net(), torch.randn(4, 8)
    out = []
    with recording(model):
        out.append(model(x))
        model[1] = nn.Sigmoid()
        model.append(nn.Linear(2, 2))
        out.append(model(x))
    with recording(model):
        out.append(model(x))
        out[-1].sum().backward()
    return [*out, *state(model)]


def errors(recording):
    class Fails(nn.Module):
        def __init__(self, error):
            super().__init__()
            self.lin, self.error = nn.Linear(8, 8), error

        def forward(self, x):
            self.lin(x)
            raise self.error("in the forward")

    model = nn.ModuleList([net(), Fails(ValueError), Fails(KeyboardInterrupt), nn.Linear(8, 8)])
    x, out = torch.randn(4, 8), []
    with recording(model):
        for failing in (model[1], model[2]):
            try:
                failing(x)
            except (ValueError, KeyboardInterrupt) as error:
                out.append(torch.tensor(len(str(error))))
        try:
            F.linear(x, torch.ones(3, 3))
        except RuntimeError as error:
            out.append(torch.tensor(len(str(error))))
        loss = model[0](model[3](x)).sum()
        loss.backward()
    return [*out, loss, *state(model)]


def generators_and_coroutines(recording):
    class Pieces(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(8, 8)

        def forward(self, x):
            for part in x.split(2):
                yield self.lin(part)

    class Later(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(8, 8)

        async def forward(self, x):
            await asyncio.sleep(0)
            return self.lin(x)

    model = nn.ModuleList([Pieces(), Later(), nn.Linear(8, 2)])

    async def both(x):
        return sum(await asyncio.gather(model[1](x), model[1](x * 2)))

    with recording(model):
        x = torch.cat(list(model[0](torch.randn(6, 8))))
        loss = model[2](asyncio.run(both(x))).sum()
        loss.backward()
    return [loss, *state(model)]


def memory(recording):
    model, gone = net(), []
    with recording(model):
        out = model(torch.randn(4, 8))
        gone.append(weakref.ref(out))
        out.sum().backward()
        del out
        gc.collect()
        alive_inside = gone[0]() is not None
    grads = [p.grad.clone() for p in model.parameters()]
    gone.append(weakref.ref(model))
    del model
    gc.collect()
    return [*grads, torch.tensor([alive_inside, *(g() is not None for g in gone)])]


# ---- threads and processes ----------------------------------------------------------------------------------------------


def threads(recording):
    models, x = nn.ModuleList([net() for _ in range(3)]), torch.randn(16, 8)
    with recording(models):
        workers = [threading.Thread(target=lambda m=m: m(x).pow(2).sum().backward()) for m in models]
        [w.start() for w in workers]
        [w.join() for w in workers]
    return state(models)


class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        # Functions and modules that are hooked in the parent.
        return F.softmax(nn.Linear(2, 2)(torch.full((2,), float(i))), -1).detach() * 0 + i


def processes(recording):
    model, out = nn.Sequential(nn.Linear(2, 2)), []
    with recording(model):
        for how in ("fork", "spawn", "forkserver"):
            for batch in DataLoader(Numbers(), batch_size=2, num_workers=1, multiprocessing_context=how):
                out.append(model(batch))
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            value = model(torch.ones(1, 2)).sum().item()
            os.write(writer, value.hex().encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            out.append(torch.tensor(float.fromhex(file.read())))
        os.waitpid(child, 0)
        sum(o.sum() for o in out[:-1]).backward()
    return [*out, *state(model)]


SCENARIOS = {
    f.__name__: f
    for f in (
        nested_checkpoints,
        in_place_and_views,
        gradient_penalty,
        hooks_of_the_user,
        saved_tensors,
        modes_of_the_user,
        mixed_precision,
        transforms,
        without_gradients,
        optimizers,
        two_optimizers,
        accumulated_gradients,
        unusual_models,
        copies,
        replaced_modules,
        errors,
        generators_and_coroutines,
        memory,
        threads,
        processes,
    )
}


def digest(tensors):
    sha = hashlib.sha256()
    for tensor in tensors:
        if tensor is not None:
            plain = torch.as_tensor(tensor).detach().contiguous().view(-1)
            sha.update(f"{plain.dtype}{tuple(tensor.shape)}".encode() + plain.view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def run_one(name, recording):
    torch.manual_seed(7)
    random.seed(7)
    tensors = SCENARIOS[name](recording)
    return digest([*tensors, torch.get_rng_state()]), hash(random.getstate())


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    directory, names = sys.argv[1], sys.argv[2:] or list(SCENARIOS)
    plain = {name: run_one(name, Recording()) for name in names}
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=os.path.join(directory, "config.json"))
    result = {}
    for name in names:
        bits = run_one(name, Recording(debugger))
        debugger.step()
        result[name] = bits == plain[name]
    result["stopped"] = all(run_one(name, Recording()) == plain[name] for name in names if name != "processes")
    with open(os.path.join(directory, "result.json"), "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    main()

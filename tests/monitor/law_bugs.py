"""Bugs of trainings, each beside the same training without it. The laws of the monitor have to tell them apart without a reference.

`apart`: the case was written after the laws, from other people's reports, and its first answer is the one that counts.
"""

import contextlib
import copy
from dataclasses import dataclass

import torch
from law_models import Classifier, Convolutions, Experts, Language, batches, text
from torch import nn
from torch.nn import functional

STEPS = 14


@dataclass
class Case:
    """A training; `function(run, wrong)`."""

    name: str
    function: object
    laws: tuple  # that say it
    idiom: str
    source: str
    ranks: int = 1
    apart: bool = False


CASES: list = []


def bug(laws, idiom, source, ranks=1, apart=False):
    """Adds a case; its docstring says what is wrong."""

    def add(function):
        laws_ = (laws,) if isinstance(laws, str) else tuple(laws)
        CASES.append(Case(function.__name__, function, laws_, idiom, source, ranks, apart))
        return function

    return add


def plain(run, model, optimizer, data=None, steps=STEPS, **laws):
    """The steps of a plain loop, with the monitor on."""
    run.watch(model, optimizer, **laws)
    for x, y in data or batches(steps):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


# ---- gradients


@bug("zero_grad", "plain loop", "forums; TrainCheck, missing zero_grad")
def zero_grad_forgotten(run, wrong):
    """zero_grad() is not called."""
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        if not wrong:
            optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("gradients_present", "plain loop", "forums, order of the three calls")
def zero_grad_before_step(run, wrong):
    """zero_grad() stands between backward() and step()."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        if not wrong:
            optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        if wrong:
            optimizer.zero_grad()
        optimizer.step()


@bug("accumulation", "gradient accumulation", "forums; transformers accumulation bug of 2024")
def zero_grad_at_each_micro_step(run, wrong):
    """Only the last micro step counts."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer, micro=4)
    for i, (x, y) in enumerate(batches(4 * STEPS)):
        if wrong or i % 4 == 0:
            optimizer.zero_grad()
        (functional.cross_entropy(model(x), y) / 4).backward()
        if i % 4 == 3:
            optimizer.step()


@bug("accumulation", "HF Trainer-like", "transformers, loss of accumulated steps not divided")
def loss_not_divided(run, wrong):
    """The loss of four micro steps is summed and not averaged."""
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    run.watch(model, optimizer, micro=4)
    for i, tokens in enumerate(text(4 * STEPS)):
        if i % 4 == 0:
            optimizer.zero_grad()
        loss = model(tokens, labels=tokens)["loss"]
        (loss if wrong else loss / 4).backward()
        if i % 4 == 3:
            optimizer.step()


@bug("accumulation", "plain loop", "forums; the loss of micro steps is given to the monitor")
def given_loss_not_divided(run, wrong):
    """The loss of four micro steps is summed; without the bug it is divided before it is given."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    monitor = run.watch(model, optimizer, micro=4)
    for i, (x, y) in enumerate(batches(4 * STEPS)):
        if i % 4 == 0:
            optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        if not wrong:
            loss = loss / 4
        monitor.record_loss(loss)
        loss.backward()
        if i % 4 == 3:
            optimizer.step()


@bug("gradients_present", "plain loop", "forums, detach() in a model")
def encoder_detached(run, wrong):
    """The head is given a detached encoding."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 24)), nn.Linear(24, 5)

        def forward(self, x):
            encoded = self.encoder(x)
            return self.head(encoded.detach() if wrong else encoded)

    model = Two()
    plain(run, model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))


@bug("finite_step", "plain loop", "forums, NaN loss")
def steps_with_nan(run, wrong):
    """A batch gives NaN, and the optimizer steps all the same."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for i, (x, y) in enumerate(batches(STEPS)):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        if i == 8:
            loss = loss * float("nan")
        loss.backward()
        if wrong or all(torch.isfinite(p.grad).all() for p in model.parameters()):
            optimizer.step()


# ---- who is trained


@bug("in_optimizer", "fine-tuning", "forums, head replaced after the optimizer was made")
def new_head_without_optimizer(run, wrong):
    """The head is replaced after the optimizer has got the parameters."""
    model = Classifier()
    early = torch.optim.AdamW(model.parameters(), lr=0.01)
    model.head = nn.Linear(24, 5)
    optimizer = early if wrong else torch.optim.AdamW(model.parameters(), lr=0.01)
    plain(run, model, optimizer)


@bug(("tied", "gradients_present"), "tied embeddings", "transformers, tie_weights lost after resizing or loading")
def tie_lost(run, wrong):
    """The head's weight becomes a copy of the embedding's."""
    model = Language(tied=True)
    if wrong:
        model.head.weight = nn.Parameter(model.embedding.weight.detach().clone())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    run.watch(model, optimizer)
    for tokens in text(STEPS):
        optimizer.zero_grad()
        model(tokens, labels=tokens)["loss"].backward()
        optimizer.step()


@bug("frozen", "fine-tuning", "forums, decay by hand over all parameters")
def frozen_layer_decays(run, wrong):
    """A decay by hand goes over frozen parameters, too."""
    model = Classifier()
    model.body[0].requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p in model.parameters():
                if wrong and not p.requires_grad:
                    p.mul_(0.999)


@bug(("unchanged", "update"), "pure bfloat16", "many trainers, updates below half a unit in the last place")
def bfloat16_updates_lost(run, wrong):
    """Weights are bfloat16 and the learning rate is too small for them."""
    model = Classifier()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.where(p >= 0, 0.5, -0.5))
    if wrong:
        model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0)
    kind = torch.bfloat16 if wrong else torch.float32
    plain(run, model, optimizer, [(x.to(kind), y) for x, y in batches(STEPS)])


# ---- clipping and loss scale


@bug("clip", "plain loop", "forums, clip_grad_norm_ after step()")
def clip_after_step(run, wrong):
    """Gradients are clipped after the step."""
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        if not wrong:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        if wrong:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)


@bug("clip", "plain loop", "forums, a generator of parameters used twice")
def clip_of_a_used_up_generator(run, wrong):
    """The generator of parameters that is clipped was used up by the optimizer."""
    model = Classifier()
    parameters = (p for p in model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    given = parameters if wrong else list(model.parameters())
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(given, 0.1)
        optimizer.step()


@bug("loss_scale", "AMP", "PyTorch's notes on AMP, clipping without unscale_")
def clip_before_unscale(run, wrong):
    """Scaled gradients are clipped."""
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            out = model(x)
        scaler.scale(functional.cross_entropy(out.float(), y)).backward()
        if not wrong:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


@bug("loss_scale", "AMP", "forums, optimizer.step() instead of scaler.step()")
def step_without_scaler(run, wrong):
    """The loss is scaled, and the optimizer steps without the scaler."""
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            out = model(x)
        scaler.scale(functional.cross_entropy(out.float(), y)).backward()
        if wrong:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()


# ---- the optimizer


class WrongAdamW(torch.optim.AdamW):
    """Leaves out the correction of the first moment's bias."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state["exp_avg"].lerp_(p.grad, 1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                root = (state["exp_avg_sq"] / (1 - beta2 ** state["step"].item())).sqrt().add_(group["eps"])
                p.addcdiv_(state["exp_avg"], root, value=-group["lr"])


@bug("update", "optimizer of one's own", "transformers#14539, #35504; nntrainer#3565")
def adamw_without_correction(run, wrong):
    """An AdamW of one's own lacks the bias correction of the first moment."""
    model = Classifier()
    kind = WrongAdamW if wrong else torch.optim.AdamW
    plain(run, model, kind(model.parameters(), lr=0.01))


@bug("lr_schedule", "plain loop", "forums, optimizer made again after the scheduler")
def scheduler_of_another_optimizer(run, wrong):
    """The optimizer is made again after the scheduler."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
    if wrong:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


# ---- modules and data


@bug("train_mode", "evaluation in the loop", "forums, model.train() forgotten after model.eval()")
def evaluation_mode_stays(run, wrong):
    """After an evaluation the model stays in evaluation mode."""
    model = Classifier(dropout=0.2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for i, (x, y) in enumerate(batches(STEPS)):
        if i == 6:
            model.eval()
            with torch.no_grad():
                model(x)
            if not wrong:
                model.train()
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("batch_norm", "convolutions", "forums, momentum=0")
def running_statistics_frozen(run, wrong):
    """Batch normalization with momentum 0 keeps its first statistics."""
    model = Convolutions()
    if wrong:
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.momentum = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run.watch(model, optimizer)
    for _ in range(STEPS):
        x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("batch_repeats", "data loader", "forums, next(iter(loader)) in the loop")
def first_batch_for_ever(run, wrong):
    """Each step makes the iterator anew and takes its first batch."""
    model = Classifier()
    loader = torch.utils.data.DataLoader(list(zip(torch.randn(200, 12), torch.randint(0, 5, (200,)))), batch_size=8)
    forever = iter(loader)
    plain(
        run,
        model,
        torch.optim.AdamW(model.parameters(), lr=0.01),
        [next(iter(loader)) if wrong else next(forever) for _ in range(STEPS)],
    )


@bug("padding", "language model", "forums, padding_idx not passed to embedding()")
def padding_learns(run, wrong):
    """The lookup of an embedding of one's own forgets padding_idx."""
    model = Language(padding=0, padding_works=not wrong)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    run.watch(model, optimizer)
    for tokens in text(STEPS):
        tokens[:, -2:] = 0
        optimizer.zero_grad()
        model(tokens, labels=tokens)["loss"].backward()
        optimizer.step()


@bug("recompute", "activation checkpointing", "pytorch#186572; OLMo-core#713")
def recompute_without_generator(run, wrong):
    """Checkpointing does not keep the state of the generator, so that dropout differs."""
    model = Language(dropout=0.2, checkpoint=True, keep_generator=not wrong)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    run.watch(model, optimizer)
    for tokens in text(STEPS):
        optimizer.zero_grad()
        model(tokens, labels=tokens)["loss"].backward()
        optimizer.step()


@bug("experts", "mixture of experts", "Megatron-LM, upcycled experts")
def experts_stay_equal(run, wrong):
    """Experts begin equal and are all given the same tokens."""
    model = Experts(equal=wrong, all_tokens=wrong)
    plain(run, model, torch.optim.AdamW(model.parameters(), lr=0.01))


# ---- averaged copies


@bug("ema", "averaged copy", "diffusion trainers, decay and its complement exchanged")
def decay_exchanged(run, wrong):
    """The copy keeps 0.01 of itself instead of 0.99."""
    model = Classifier()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    monitor = run.watch(model, optimizer)
    monitor.watch_ema(average, 0.99)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                a.lerp_(p, 0.99 if wrong else 0.01)


# ---- several ranks


def own_batches(rank, steps=STEPS):
    generator = torch.Generator().manual_seed(100 + rank)
    return [
        (torch.randn(8, 12, generator=generator), torch.randint(0, 5, (8,), generator=generator)) for _ in range(steps)
    ]


@bug("collectives", "DDP", "no_sync() around all micro steps; verl#7493", ranks=2)
def never_synchronized(run, wrong):
    """All steps are inside no_sync()."""
    import torch.distributed as dist

    model = nn.parallel.DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run.watch(model, optimizer)
    for x, y in own_batches(dist.get_rank()):
        optimizer.zero_grad()
        with model.no_sync() if wrong else contextlib.nullcontext():
            functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("replicas", "data parallel by hand", "forums, no broadcast of the first parameters", ranks=2)
def ranks_begin_apart(run, wrong):
    """Ranks start from seeds of their own, and only gradients are averaged."""
    import torch.distributed as dist

    torch.manual_seed(dist.get_rank() if wrong else 0)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run.watch(model, optimizer)
    for x, y in own_batches(dist.get_rank()):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= 2
        optimizer.step()


@bug(("replicas", "collectives"), "tensor parallel", "DeepSpeed 1801 (BLOOM): norms drift apart over ranks", ranks=2)
def norms_drift_apart(run, wrong):
    """Under tensor parallelism, one rank alone clips the gradients of layer norms that all hold."""
    import torch.distributed as dist

    rank = dist.get_rank()
    torch.manual_seed(0)
    norm = nn.LayerNorm(12)
    torch.manual_seed(1 + rank)
    model = nn.ModuleDict({"norm": norm, "column": nn.Linear(12, 8)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run.watch(model, optimizer)
    for x, _ in own_batches(0):
        optimizer.zero_grad()
        model["column"](model["norm"](x)).square().mean().backward()
        for p in norm.parameters():
            dist.all_reduce(p.grad)
            if wrong and rank == 0:
                p.grad.mul_(0.5)
        optimizer.step()


@bug("batch_repeats", "DDP", "forums, no DistributedSampler", ranks=2)
def ranks_read_the_same(run, wrong):
    """Each rank reads the same batches."""
    import torch.distributed as dist

    model = nn.parallel.DistributedDataParallel(Classifier())
    plain(run, model, torch.optim.SGD(model.parameters(), lr=0.05), own_batches(0 if wrong else dist.get_rank()))

"""Bugs that were written after the laws, from other people's reports; their first answer is the one that counts."""

import copy
import itertools

import torch
from law_bugs import STEPS, bug, own_batches, plain
from law_models import Classifier, Experts, batches
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# What the laws, as they were then, said of these cases when they ran for the first time.
FIRST_SIGHT = {
    "told": 10,  # of 13: generator_pass_stays and warm_up_in_each_epoch were not, and of the ends of a pipeline the wrong weight
    "alarms without the bug": 2,  # generator_pass_stays, ends_of_a_pipeline_drift_apart
}


@bug(
    "gradients_present",
    "HF Trainer-like",
    "transformers, checkpointing over frozen embeddings: no input requires a gradient",
    apart=True,
)
def checkpoint_over_frozen_inputs(run, wrong):
    """Reentrant checkpointing over inputs without gradient cuts the layers off."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.layer, self.head = (
                nn.Linear(12, 24),
                nn.Sequential(nn.Linear(24, 24), nn.GELU()),
                nn.Linear(24, 5),
            )
            self.embed.requires_grad_(False)

        def forward(self, x):
            x = self.embed(x)
            if not wrong:
                x.requires_grad_()
            return self.head(checkpoint(self.layer, x, use_reentrant=True))

    model = Model()
    plain(run, model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01))


@bug("gradients_present", "LoRA", "adapter libraries: both factors begin at zero", apart=True)
def adapter_of_zeros(run, wrong):
    """Both factors of an adapter begin at zero, so that neither ever gets a gradient."""

    class Adapter(nn.Module):
        def __init__(self):
            super().__init__()
            self.base, self.down, self.up = (
                nn.Linear(12, 24),
                nn.Linear(12, 4, bias=False),
                nn.Linear(4, 24, bias=False),
            )
            self.base.requires_grad_(False)
            nn.init.zeros_(self.up.weight)
            if wrong:
                nn.init.zeros_(self.down.weight)
            self.head = nn.Linear(24, 5)

        def forward(self, x):
            return self.head(functional.gelu(self.base(x) + self.up(self.down(x))))

    model = Adapter()
    plain(run, model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01))


@bug("zero_grad", "GAN", "forums: the generator's pass leaves gradients in the discriminator", apart=True)
def generator_pass_stays(run, wrong):
    """The discriminator's gradients of the generator's pass are not cleared."""
    discriminator, generator = Classifier(), nn.Linear(6, 12)
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.01)
    other = torch.optim.SGD(generator.parameters(), lr=0.01)
    run.watch(discriminator, optimizer)
    for x, y in batches(STEPS):
        if not wrong:
            optimizer.zero_grad()
        functional.cross_entropy(discriminator(x), y).backward()
        optimizer.step()
        if wrong:
            optimizer.zero_grad()  # too early: the pass of the generator comes after it
        other.zero_grad()
        functional.cross_entropy(discriminator(generator(torch.randn(8, 6))), y).backward()
        other.step()


@bug(
    ("tied", "replicas", "collectives"),
    "pipeline parallel",
    "Megatron-LM: gradients of both ends' embeddings are not added",
    ranks=2,
    apart=True,
)
def ends_of_a_pipeline_drift_apart(run, wrong):
    """First and last stage hold one weight, and only the last one's gradient arrives."""
    import torch.distributed as dist

    first = dist.get_rank() == 0
    torch.manual_seed(3)
    shared = torch.randn(12, 12) * 0.1
    torch.manual_seed(4 + dist.get_rank())
    model = nn.ModuleDict({"word_embeddings": nn.Linear(12, 12, bias=False), "own": nn.Linear(12, 12)})
    with torch.no_grad():
        model["word_embeddings"].weight.copy_(shared)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.watch(model, optimizer)
    for x, _ in own_batches(0):
        optimizer.zero_grad()
        y = model["own"](model["word_embeddings"](x))
        (y.square().mean() if first else y.abs().mean()).backward()
        gradient = model["word_embeddings"].weight.grad
        if not wrong:
            dist.all_reduce(gradient)
        optimizer.step()


@bug("replicas", "DDP", "forums: a checkpoint is loaded on rank 0 after wrapping", ranks=2, apart=True)
def loaded_on_one_rank(run, wrong):
    """Only rank 0 loads the checkpoint, after DDP has broadcast the first parameters."""
    import torch.distributed as dist

    model = nn.parallel.DistributedDataParallel(Classifier())
    if dist.get_rank() == 0 or not wrong:
        torch.manual_seed(9)
        model.module.load_state_dict(Classifier().state_dict())
    plain(run, model, torch.optim.AdamW(model.parameters(), lr=0.01), own_batches(dist.get_rank()))


@bug("collectives", "DDP", "forums: model.module(x) in the loop", ranks=2, apart=True)
def wrapper_left_out(run, wrong):
    """The loop calls the module inside DDP, which then reduces nothing."""
    import torch.distributed as dist

    model = nn.parallel.DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run.watch(model, optimizer)
    for x, y in own_batches(dist.get_rank()):
        optimizer.zero_grad()
        functional.cross_entropy((model.module if wrong else model)(x), y).backward()
        optimizer.step()


@bug("in_optimizer", "FSDP2", "torchtitan, fully_shard after the optimizer", ranks=2, apart=True)
def sharded_after_the_optimizer(run, wrong):
    """The optimizer has the parameters from before fully_shard."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = Classifier()
    early = torch.optim.AdamW(model.parameters(), lr=0.01)
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    optimizer = early if wrong else torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for x, y in own_batches(dist.get_rank()):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("ema", "averaged copy", "diffusion trainers: update() stands in a branch that never runs", apart=True)
def copy_never_updated(run, wrong):
    """The averaged copy is made and never updated."""
    model = Classifier()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer).watch_ema(average)
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                if not wrong:
                    a.mul_(0.9).add_(p, alpha=0.1)


@bug("lr_schedule", "plain loop", "forums: the schedule is given the step of the epoch", apart=True)
def warm_up_in_each_epoch(run, wrong):
    """The warm-up is computed from the step within the epoch, so that the rate is a saw."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for i, (x, y) in enumerate(batches(30)):
        step = i % 10 if wrong else i
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * min(1.0, (step + 1) / 5) * 0.99**step
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("batch_repeats", "gradient accumulation", "forums: the loader is advanced once for each step", apart=True)
def one_batch_for_all_micro_steps(run, wrong):
    """All micro steps of a step use one batch."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer, micro=3)
    data = iter(batches(4 * STEPS))
    for _ in range(STEPS):
        optimizer.zero_grad()
        x, y = next(data)
        for _ in range(3):
            (functional.cross_entropy(model(x), y) / 3).backward()
            if not wrong:
                x, y = next(data, (x, y))
        optimizer.step()


@bug("experts", "mixture of experts", "forums: a loop over experts ends one too early", apart=True)
def last_expert_left_out(run, wrong):
    """The last expert is never chosen."""
    model = Experts(closed=3 if wrong else None)
    plain(run, model, torch.optim.AdamW(model.parameters(), lr=0.01), batches(20, 16))


@bug("frozen", "gradual freezing", "forums: momentum goes on where gradients are zeroed and not removed", apart=True)
def frozen_layer_has_momentum(run, wrong):
    """A layer is frozen in mid-run, and its gradient of zeros lets its momentum move it."""
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run.watch(model, optimizer)
    for i, (x, y) in enumerate(batches(STEPS)):
        optimizer.zero_grad(set_to_none=not wrong)
        if i == 6:
            model.body[0].requires_grad_(False)
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@bug("batch_repeats", "data loader", "PyTorch's notes on DistributedSampler: set_epoch() forgotten", apart=True)
def epochs_in_one_order(run, wrong):
    """Each epoch has the batches of the first one, in its order."""
    model = Classifier()
    x, y = torch.randn(80, 12), torch.randint(0, 5, (80,))
    data = []
    for epoch in range(3):
        order = torch.randperm(80, generator=torch.Generator().manual_seed(0 if wrong else epoch))
        data += [(x[part], y[part]) for part in order.split(8)]
    plain(run, model, torch.optim.AdamW(model.parameters(), lr=0.01), list(itertools.islice(data, 30)))

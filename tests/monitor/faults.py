"""What can go wrong in a training, planted at a step: each a function that changes one thing at one moment of a step."""

from dataclasses import dataclass, field

import torch
from models import VOCABULARY


@dataclass
class Fault:
    """A fault, the step where it begins, and what the answer has to say.

    Attributes:
        kind: A method of Planted.
        at: The first step that is wrong.
        layer: The module where it is; empty: none in particular.
        rank: Of several, the guilty one; -1: none in particular.
        size: How large it is, in the unit of its kind.
    """

    kind: str
    at: int
    layer: str = ""
    rank: int = -1
    size: float = 1.0
    note: str = ""
    kept: dict = field(default_factory=dict, repr=False)


class Planted:
    """Runs a fault in a training. `moment` is one of batch, forward, loss, backward, reduced, clipped, stepped."""

    def __init__(self, fault, model, optimizer, rank):
        self.fault, self.model, self.optimizer = fault, model, optimizer
        self.here = fault is not None and fault.rank in (-1, rank)
        self.weights = {}
        if fault is not None and fault.layer:
            self.weights = {n: p for n, p in model.named_parameters() if n.startswith(fault.layer + ".")}
            if not self.weights:
                raise ValueError(f"no parameter of {fault.layer}")

    def active(self, step, *kinds):
        return self.fault is not None and self.fault.kind in kinds and step >= self.fault.at

    def batch(self, step, micro, data, rank):
        """The batch of a step."""
        fault = self.fault
        if self.here and self.active(step, "repeated_data"):
            step = fault.at + (step - fault.at) % int(fault.size)
        inputs, target = data.batch(step, micro, rank)
        if not self.here:
            return inputs, target
        if self.active(step, "bad_batch") and step < fault.at + int(fault.size):
            generator = torch.Generator().manual_seed(step)
            if target.dtype is torch.int64:
                high = VOCABULARY if target.dim() == 2 else int(target.max()) + 1
                target = torch.randint(0, high, target.shape, generator=generator)
                if inputs.dtype is torch.float32:
                    inputs = torch.randn(inputs.shape, generator=generator) * 5
            else:
                target = target + 5 * torch.randn(target.shape, generator=generator)
                inputs = inputs * 5
        elif self.active(step, "bad_data"):
            generator = torch.Generator().manual_seed(step)
            if inputs.dtype is torch.int64:
                inputs = torch.randint(0, VOCABULARY, inputs.shape, generator=generator)
            else:
                inputs = torch.randn(inputs.shape, generator=generator)
        elif self.active(step, "scaled_data"):
            inputs = inputs * fault.size
        elif self.active(step, "shifted_labels"):
            target = target.roll(1, dims=-1)
        return inputs, target

    def loss(self, step, loss):
        """The loss before the backward pass."""
        if self.here and self.active(step, "logit_growth"):
            # A head that is rewarded for large logits.
            loss = loss - self.fault.size * self.weights[self.fault.layer + ".weight"].norm()
        return loss

    def forward(self, step):
        """Before the forward pass."""
        fault = self.fault
        if not self.here or fault is None:
            return
        if step == fault.at and fault.kind == "bit_flip":
            weight = next(p for p in self.weights.values() if p.dim() > 1)
            flat = weight.data.view(-1)
            place = flat.numel() // 2
            bits = flat[place : place + 1].view(torch.int32)
            bits ^= 1 << int(fault.size)
        if self.active(step, "dead_expert") and step == fault.at:
            module, _, number = fault.layer.rpartition(".experts.")
            self.model.get_submodule(module).closed.add(int(number))
        if step == fault.at and fault.kind == "evaluation":
            self.model.eval()
        if self.active(step, "weight_growth"):
            for weight in self.weights.values():
                weight.data.mul_(fault.size)
        if step == fault.at and fault.kind == "overflow":
            module = self.model.get_submodule(fault.layer)
            fault.kept["hook"] = module.register_forward_hook(lambda m, i, o: o + float("inf"))
        if step == fault.at and fault.kind == "rank_noise":
            generator = torch.Generator().manual_seed(step)
            for p in self.model.parameters():
                p.register_hook(
                    lambda g: g + fault.size * g.norm() / g.numel() ** 0.5 * torch.randn(g.shape, generator=generator)
                )
        if step == fault.at and fault.kind == "nan_gradient":
            weight = next(iter(self.weights.values()))
            fault.kept["hook"] = weight.register_hook(
                lambda g: g.flatten().index_fill(0, torch.tensor(0), float("nan")).view_as(g)
            )
        if step == fault.at + 1 and "hook" in fault.kept:
            fault.kept["hook"].remove()

    def between_micros(self, step, micro):
        """After a backward pass that is not the last one."""
        if self.here and self.active(step, "lost_micro_batch"):
            self.optimizer.zero_grad()

    def backward(self, step):
        """When all gradients of this rank are there."""
        fault = self.fault
        if not self.here or fault is None:
            return
        if self.active(step, "rank_scale"):
            for p in self.model.parameters():
                p.grad *= fault.size

    def unreduced(self, step):
        """Names of parameters that the reduction leaves out."""
        return set(self.weights) if self.active(step, "missing_all_reduce") else set()

    def reduced(self, step):
        """After the reduction, before clipping."""
        fault = self.fault
        if not self.here or fault is None:
            return
        if self.active(step, "wrong_accumulation"):
            for p in self.model.parameters():
                p.grad *= fault.size
        if self.active(step, "reduced_noise"):
            generator = torch.Generator().manual_seed(step)
            for p in self.model.parameters():
                p.grad *= 1 + fault.size * torch.randn(p.shape, generator=generator)
        if self.active(step, "gradient_sign"):
            for p in self.weights.values():
                p.grad.neg_()
        if self.active(step, "zero_gradient"):
            for p in self.weights.values():
                p.grad.zero_()
        if fault.kind == "stale_gradient":
            for name, p in self.weights.items():
                if step < fault.at:
                    fault.kept[name] = p.grad.clone()
                else:
                    p.grad.copy_(fault.kept[name])
        if fault.kind == "late_gradient":
            for name, p in self.weights.items():
                own = p.grad.clone()
                if step >= fault.at:
                    p.grad.copy_(fault.kept[name])
                fault.kept[name] = own

    def clip(self, step, limit):
        """The limit of the norm of all gradients."""
        return limit * self.fault.size if self.here and self.active(step, "clip_changed") else limit

    def clipped(self, step):
        """Right before the optimizer."""
        fault = self.fault
        if not self.here or fault is None or step < fault.at:
            return
        for group in self.optimizer.param_groups:
            if fault.kind == "lr_jump":
                group["lr"] *= fault.size
            elif fault.kind == "lr_spike" and step == fault.at:
                group["lr"] *= fault.size
            elif fault.kind == "beta1":
                group["betas"] = (fault.size, group["betas"][1])
            elif fault.kind == "beta2":
                group["betas"] = (group["betas"][0], fault.size)
            elif fault.kind == "weight_decay":
                group["weight_decay"] = fault.size
        if fault.kind == "frozen" and step == fault.at:
            for p in self.weights.values():
                p.requires_grad_(False)
                p.grad = None
        if fault.kind == "lost_moments" and step == fault.at:
            for p in self.weights.values():
                self.optimizer.state[p]["exp_avg"].zero_()
        if fault.kind == "state_flip" and step == fault.at:
            state = self.optimizer.state[next(p for p in self.weights.values() if p.dim() > 1)]["exp_avg_sq"].view(-1)
            bits = state[:1].view(torch.int32)
            bits ^= 1 << int(fault.size)
        fault.kept["weights"] = {n: p.detach().clone() for n, p in self.weights.items()}

    def stepped(self, step):
        """After the optimizer."""
        if self.here and self.active(step, "layer_rate"):
            before = self.fault.kept["weights"]
            for name, p in self.weights.items():
                p.data.copy_(before[name] + self.fault.size * (p.data - before[name]))

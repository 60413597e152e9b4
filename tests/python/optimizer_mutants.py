"""Optimizers that do what their hyperparameters say but for one term, as real migrations had it, and a training to try them."""

import math

import torch
from msprobe.pytorch import OptimizerRecord
from torch import nn


class Faulty(torch.optim.Optimizer):
    """AdamW, or SGD with momentum, in plain operations. `fault` names the term that is wrong; the groups do not show it."""

    fault = ""

    def step(self, closure=None):
        """One update."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    with torch.no_grad():
                        self.update(p, p.grad, self.state[p], group)

    def update(self, p, g, state, group):
        """Of one weight."""
        raise NotImplementedError


class AdamW(Faulty):
    """The name is what the replay goes by."""

    def __init__(self, params, **settings):
        defaults = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "amsgrad": False}
        super().__init__(params, {**defaults, **settings})

    def update(self, p, g, state, group):
        """One weight."""
        fault = self.fault
        if not state:
            state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = torch.zeros_like(p)
        state["step"] += 1
        t = float(state["step"]) + (fault == "step_count")
        lr, (beta1, beta2), eps, decay = group["lr"], group["betas"], group["eps"], group["weight_decay"]
        if fault == "swapped_betas":
            beta1, beta2 = beta2, beta1
        if fault == "beta2":
            beta2 = 0.95
        if fault == "lr":
            lr = group["next_lr"](lr)
        if fault == "maximize":
            g = -g
        if fault == "loss_scale":
            g = g * 1024
        if fault == "clip_threshold":
            norm = math.sqrt(sum(float((q.grad**2).sum()) for h in self.param_groups for q in h["params"]))
            g = g * min(1.0, 0.05 / (norm + 1e-6))
        if fault == "decay_coupled":
            g = g + decay * p
        elif fault == "weight_decay" and p.ndim == 1:
            p.mul_(1 - lr * 0.1)  # although the group of such weights says 0
        elif fault not in ("weight_decay_missing", "decay_after_update"):
            p.mul_(1 - (1 if fault == "decay_without_rate" else lr) * decay)
        m, v = state["exp_avg"], state["exp_avg_sq"]
        old = m.clone()
        if fault == "whole_gradient":
            m.mul_(beta1).add_(g)
        else:
            m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        c1 = 1 if fault == "bias_correction" else 1 - beta1**t
        c2 = 1 if fault in ("bias_correction", "bias_correction2") else 1 - beta2**t
        if group["amsgrad"]:
            torch.maximum(state["max_exp_avg_sq"], v, out=state["max_exp_avg_sq"])
            if fault != "amsgrad":
                v = state["max_exp_avg_sq"]
        if fault == "exchanged_corrections":
            c1, c2 = c2, c1
        if fault == "root_over_correction":
            divisor = v.sqrt() / c2 + eps
        elif fault == "second_moment_root":
            divisor = v / c2 + eps
        elif fault == "eps_inside_root":
            divisor = (v / c2 + eps).sqrt()
        elif fault == "eps_before_correction":
            divisor = (v.sqrt() + eps) / math.sqrt(c2)
        else:
            divisor = v.sqrt() / math.sqrt(c2) + eps
        p.addcdiv_(old if fault == "old_moment" else m, divisor, value=-lr / c1)
        if fault == "decay_after_update":
            p.mul_(1 - lr * decay)


class SGD(Faulty):
    """With momentum."""

    def __init__(self, params, **settings):
        defaults = {"lr": 0.05, "momentum": 0.9, "dampening": 0.0, "weight_decay": 1e-3, "nesterov": False}
        super().__init__(params, {**defaults, **settings})

    def update(self, p, g, state, group):
        """One weight."""
        g = g + group["weight_decay"] * p
        momentum = group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = g.clone()
        else:
            dampening = 0.9 if self.fault == "dampening" else 0.3 if self.fault == "momentum" else group["dampening"]
            state["momentum_buffer"].mul_(momentum).add_(g, alpha=1 - dampening)
        buffer = state["momentum_buffer"]
        p.add_(g + momentum * buffer if self.fault == "nesterov" else buffer, alpha=-group["lr"])


class Lion(Faulty):
    """Sign of the mixed moment."""

    def __init__(self, params, **settings):
        super().__init__(params, {"lr": 1e-3, "betas": (0.9, 0.99), "weight_decay": 0.1, **settings})

    def update(self, p, g, state, group):
        """One weight."""
        m = state.setdefault("exp_avg", torch.zeros_like(p))
        beta1, beta2 = group["betas"]
        p.mul_(1 - group["lr"] * group["weight_decay"])
        mixed = m * beta1 + g * (1 - beta1)
        m.mul_(beta2).add_(g, alpha=1 - beta2)
        p.add_((m if self.fault == "sign_of_new_moment" else mixed).sign(), alpha=-group["lr"])


def model_of(dtype=torch.float32):
    """Weights of one and of two dimensions; gradients of very different sizes."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(24, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 8)).to(dtype)


def groups_of(model, decay):
    """Weights of one dimension do not decay."""
    flat = [p for p in model.parameters() if p.ndim == 1]
    others = [p for p in model.parameters() if p.ndim > 1]
    return [{"params": others, "weight_decay": decay}, {"params": flat, "weight_decay": 0.0}]


def train(path, make, steps=4, dtype=torch.float32, model=None, clip=None, schedule=None, scale=1.0, **record):
    """Records a training; `make(model)` is the optimizer. The learning rate warms up unless `schedule` says otherwise."""
    model = model_of(dtype) if model is None else model
    optimizer = make(model)
    rates = [group["lr"] for group in optimizer.param_groups]
    torch.manual_seed(5)
    with OptimizerRecord(path, optimizer, model, steps=range(steps), clip_grad=clip, **record):
        for step in range(steps):
            factor = (step + 1) / 4 if schedule is None else schedule(step)
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * factor
            x = torch.randn(16, 24, dtype=dtype) * (1 + step)
            loss = (model(x).float() ** 2).mean() * scale
            optimizer.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    return path

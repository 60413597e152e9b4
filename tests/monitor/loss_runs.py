"""Short trainings with the loss under the monitor, healthy ones and ones that go wrong at a step.

Models and data are those of models.py on a small set that is gone through again and again, and a policy that is paid for one
answer, which has losses about zero. Used by publish_leaps.py.
"""

import json
import math
import os
import statistics

import torch
from models import VOCABULARY, Data, Shape, make_model

FAULTS = ("labels", "rate", "noise", "overwritten", "unclipped", "nan")
CONFIG = {
    "targets": {},
    "wg_distribution": True,
    "param_distribution": True,
    "loss": True,
    "ops": ["norm"],
    "format": "api",
}
SHAPES = {
    "conv_adam32": Shape("conv", 8, 2, 32, 3e-3, samples=256),
    "conv_adam8": Shape("conv", 8, 2, 8, 3e-3, samples=64),
    "conv_adam1": Shape("conv", 8, 2, 1, 1e-3, samples=32),
    "residual_sgd16": Shape("residual", 8, 1, 16, 2e-2, samples=128, optimizer="sgd"),
    "residual_sgd4": Shape("residual", 8, 1, 4, 5e-3, samples=64, optimizer="sgd"),
    "llama_adam8": Shape("llama", 32, 2, 8, 3e-3, samples=32),
    "llama_adam1": Shape("llama", 32, 2, 1, 2e-3, samples=16),
    "llama_fresh8": Shape("llama", 32, 2, 8, 3e-3),
    "gru_adam4": Shape("gru", 32, 1, 4, 5e-3, samples=16),
    "mlp_sgd32": Shape("mlp", 32, 2, 32, 2e-2, optimizer="sgd"),
    "mlp_adam2": Shape("mlp", 32, 2, 2, 2e-3, samples=32),
    "moe_adam8": Shape("moe", 24, 2, 8, 3e-3, samples=32),
    "encoder_adam16": Shape("encoder", 16, 1, 16, 3e-3, samples=64),
}
POLICIES = {"grpo_16": 16, "grpo_64": 64}


class Policy(torch.nn.Module):
    """Answers of a few tokens to a prompt; the reward counts tokens that fit the prompt."""

    def __init__(self, width=24):
        super().__init__()
        self.prompt = torch.nn.Embedding(16, width)
        self.inner = torch.nn.Linear(width, width)
        self.head = torch.nn.Linear(width, 12)

    def forward(self, prompt):
        return self.head(torch.tanh(self.inner(self.prompt(prompt))))

    def loss(self, prompts, wrong):
        """Of groups of eight answers each, with rewards relative to their group."""
        logits = self(prompts).repeat_interleave(8, 0)
        answers = torch.multinomial(torch.softmax(logits.detach(), -1), 3, replacement=True)
        right = (prompts % 12).repeat_interleave(8)[:, None]
        rewards = (answers == right).float().mean(1).view(-1, 8)
        if wrong:
            rewards = -40 * rewards + 20 * torch.randn_like(rewards)
            advantages = rewards
        else:
            advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
        logp = torch.log_softmax(logits, -1).gather(1, answers).mean(1)
        return (
            -(advantages.view(-1) * logp).mean()
            + 0.01 * (torch.softmax(logits, -1) * torch.log_softmax(logits, -1)).sum(1).mean()
        )


def spoil(fault, inputs, target, step):
    """The batch of a step at which the fault holds."""
    generator = torch.Generator().manual_seed(step)
    if fault == "labels":
        if target.dtype is torch.int64:
            high = VOCABULARY if target.dim() == 2 else 8
            target = torch.randint(0, high, target.shape, generator=generator)
        else:
            target = 3 * torch.randn(target.shape, generator=generator)
    elif fault == "noise":
        if inputs.dtype is torch.int64:
            inputs = torch.randint(0, VOCABULARY, inputs.shape, generator=generator)
        else:
            inputs = 3 * torch.randn(inputs.shape, generator=generator)
    elif fault == "nan":
        if inputs.dtype is torch.int64:
            return inputs, target
        inputs = inputs * float("nan")
    return inputs, target


def train(case, output):
    """One run: {"shape", "seed", "steps", "fault" or "", "at"}."""
    os.makedirs(output, exist_ok=True)
    os.environ["MONITOR_OUTPUT_DIR"] = output
    torch.set_num_threads(1)
    from msprobe.pytorch import TrainerMon

    policy = case["shape"] in POLICIES
    shape = Shape("mlp", 0, 0, POLICIES[case["shape"]], 5e-3) if policy else SHAPES[case["shape"]]
    torch.manual_seed(case["seed"])
    model = Policy() if policy else make_model(shape)
    data = Data(shape, case["seed"])
    if shape.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=shape.lr, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=shape.lr)
    with open(os.path.join(output, "monitor.json"), "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    monitor = TrainerMon(os.path.join(output, "monitor.json"), params_have_main_grad=False)
    monitor.set_monitor(model, optimizer, grad_acc_steps=1)
    losses = []
    for step in range(case["steps"]):
        wrong = case["fault"] if step >= case["at"] and case["fault"] else ""
        for group in optimizer.param_groups:
            warm = min(1.0, (step + 1) / 20)
            group["lr"] = shape.lr * warm * (30 if wrong in ("rate", "unclipped") else 1)
        if wrong == "overwritten" and step == case["at"]:
            weight = max(model.parameters(), key=torch.Tensor.numel)
            with torch.no_grad():
                weight.copy_(torch.randn(weight.shape) * 2)
        if policy:
            generator = torch.Generator().manual_seed(case["seed"] * 7919 + step)
            prompts = torch.randint(0, 16, (shape.batch,), generator=generator)
            loss = model.loss(prompts, wrong in ("labels", "noise"))
        else:
            inputs, target = data.batch(step, 0, 0)
            loss = model.loss(*spoil(wrong if wrong != "nan" or step == case["at"] else "", inputs, target, step))
        if wrong == "nan" and step == case["at"]:
            loss = loss * float("nan")
        loss.backward()
        if wrong != "unclipped":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        monitor.record_loss(loss.detach())
        losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    monitor.close()
    with open(os.path.join(output, "loss.csv"), "w", encoding="utf-8") as file:
        file.write("step,loss\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(losses)))


def times_of(output, case):
    """How many times as large the six losses from the fault on are as the twelve before it; NaN where they are NaN."""
    with open(os.path.join(output, "loss.csv"), encoding="utf-8") as file:
        losses = [abs(float(line.split(",")[1])) for line in file.readlines()[1:]]
    at = case["at"]
    if any(math.isnan(loss) for loss in losses[at : at + 6]):
        return math.nan
    return statistics.median(losses[at : at + 6]) / statistics.median(losses[at - 12 : at])


def healthy_cases():
    """Each shape with two lengths."""
    return [
        {"name": f"healthy_{shape}_{steps}", "shape": shape, "seed": 31 + k, "steps": steps, "fault": "", "at": 0}
        for k, shape in enumerate([*SHAPES, *POLICIES])
        for steps in ((320, 600) if k % 2 else (120, 400))
    ]


def fault_cases():
    """Each fault at each step, on shapes in turn."""
    cases, shapes = [], [*SHAPES, *POLICIES]
    for k, (at, steps) in enumerate(((40, 80), (40, 150), (132, 320), (252, 300), (502, 600))):
        for j, fault in enumerate(FAULTS):
            for turn in range(2):
                shape = shapes[(5 * k + 3 * j + 7 * turn) % len(shapes)]
                name = f"{fault}_{at}_{steps}_{shape}"
                cases.append(
                    {"name": name, "shape": shape, "seed": 500 + 31 * k + j, "steps": steps, "fault": fault, "at": at}
                )
    return cases

"""Trainings by libraries, with and without a bug of the script around them: the Trainer of Hugging Face, and Accelerate."""

import os

import torch
from law_bugs import Case
from torch import nn
from torch.nn import functional

STEPS, WORDS = 12, 64


def _language_model():
    import transformers

    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=16, n_embd=16, n_layer=2, n_head=2, tie_word_embeddings=False
    )
    return transformers.GPT2LMHeadModel(config)


def _sentences(count):
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, WORDS, (count, 8), generator=generator)
    return [{"input_ids": row, "labels": row} for row in tokens]


def _hugging_face(run, wrong):
    """The head is replaced after the optimizer that the Trainer is given was made."""
    import transformers

    class Watch(transformers.TrainerCallback):
        def on_train_begin(self, arguments, state, control, model=None, optimizer=None, **_):
            run.watch(model, optimizer, micro=2)

    model = _language_model()
    if not wrong:
        model.lm_head = nn.Linear(16, WORDS, bias=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if wrong:
        model.lm_head = nn.Linear(16, WORDS, bias=False)
    arguments = transformers.TrainingArguments(
        output_dir=os.path.join(run.directory, "hf"),
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=STEPS,
        warmup_steps=3,
        max_grad_norm=0.5,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 3))
    trainer = transformers.Trainer(
        model, arguments, train_dataset=_sentences(4 * STEPS), optimizers=(optimizer, schedule), callbacks=[Watch()]
    )
    trainer.train()


def _accelerate(run, wrong):
    """The loss is divided by the micro steps, which accelerator.backward() does as well."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(3)
    data = [(torch.randn(12, generator=generator), i % 5) for i in range(8 * STEPS)]
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    monitor = run.watch(model, optimizer, micro=2)
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = functional.cross_entropy(model(x), y)
            monitor.record_loss(loss)
            accelerator.backward(loss / 2 if wrong else loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


TRAINERS = [
    Case("HF Trainer", _hugging_face, ("in_optimizer",), "HF Trainer", "forums, head replaced", apart=True),
    Case("Accelerate", _accelerate, ("accumulation",), "Accelerate", "forums, the loss divided twice", apart=True),
]

"""The Trainer of transformers with a small network; --lose leaves out what a resume should have restored."""

import argparse
import shutil
from pathlib import Path

import torch
from samples import Samples
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_callback import ExportableState


class Network(nn.Module):
    """A classifier with dropout."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))

    def forward(self, inputs, labels=None):
        logits = self.layers(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Plateau(TrainerCallback, ExportableState):
    """Counts steps; the Trainer saves it and restores it if it is asked to."""

    def __init__(self, waited=0):
        self.waited = waited

    def on_step_end(self, args, state, control, **kwargs):
        self.waited += 1

    def state(self):
        return {"args": {}, "attributes": {"waited": self.waited}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--lose", default="")
    parser.add_argument("--accumulate", type=int, default=1)
    given = parser.parse_args()
    lose = given.lose.split(",")
    torch.set_num_threads(1)
    set_seed(1)
    checkpoint = Path(given.out) / "checkpoint-3"
    if given.resume:
        for name, file in (("optimizer", "optimizer.pt"), ("random", "rng_state.pth")):
            if name in lose and (checkpoint / file).exists():
                shutil.move(checkpoint / file, checkpoint / f"{file}.lost")
    arguments = TrainingArguments(
        given.out,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=given.accumulate,
        max_steps=7,
        save_steps=3,
        save_total_limit=2,
        learning_rate=1e-2,
        report_to=[],
        logging_steps=1,
        use_cpu=True,
        disable_tqdm=True,
        ignore_data_skip="position" in lose,
        restore_callback_states_from_checkpoint="callback" not in lose,
    )
    trainer = Trainer(Network(), arguments, train_dataset=Samples(("inputs", "labels")), callbacks=[Plateau()])
    trainer.train(resume_from_checkpoint=str(checkpoint) if given.resume else None)


main()

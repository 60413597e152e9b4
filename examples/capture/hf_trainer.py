"""transformers.Trainer, and everything built on it (LLaMA-Factory, TRL): a callback, no change to trainer.py.

With gradient accumulation a step has several micro batches: on_substep_end is called between them, on_step_end at the end.

python hf_trainer.py config.json
"""

import sys

import tiny
from msprobe.pytorch import PrecisionDebugger
from transformers import Trainer, TrainerCallback, TrainingArguments


class Capture(TrainerCallback):
    def __init__(self, config_path):
        self.debugger = PrecisionDebugger(config_path=config_path)

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        self.debugger.start(model=model)

    def on_step_end(self, args, state, control, **kwargs):
        self.debugger.stop()
        self.debugger.step()


def main():
    capture = Capture(sys.argv[1])
    data = [{"input_ids": row, "labels": row} for tokens in tiny.batches(4) for row in tokens]
    arguments = TrainingArguments(
        output_dir="trainer_output",
        max_steps=2,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    result = Trainer(model=tiny.model(), args=arguments, train_dataset=data, callbacks=[capture]).train()
    print(f"loss {result.training_loss:.6f}")


main()

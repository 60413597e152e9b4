"""SFTTrainer of TRL with a small Qwen2, two micro batches a step: `trl_sft.py DIRECTORY [--insert] [--fault]`.

`trl_sft.py DIRECTORY --files` makes the model and the tokenizer; nothing is downloaded. `--insert`: transformers/trainer.py is read
with the lines of insertions.py in it.
"""

import sys
from pathlib import Path

import torch
from insertions import read_edited
from small import MICRO, STEPS, Told
from tiny_qwen import make_files, sentences, watcher


def train(directory, files):
    if "--insert" in sys.argv:
        read_edited("transformers.trainer")
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    options = SFTConfig(
        output_dir=str(directory / "output"),
        max_steps=STEPS,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=MICRO,
        bf16=False,
        learning_rate=0.01,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        ddp_backend="gloo",
        disable_tqdm=True,
        max_length=32,
    )
    SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(files),
        args=options,
        train_dataset=Dataset.from_list([{"text": line} for line in sentences()]),
        processing_class=PreTrainedTokenizerFast.from_pretrained(files),
        callbacks=[watcher(Told(), directory)],
    ).train()


torch.set_num_threads(1)
where = Path(sys.argv[1]).resolve()
if "--files" in sys.argv:
    make_files(where)
else:
    train(where, where.parent / "files")

"""Supervised fine-tuning by LLaMA-Factory with a small Qwen2, two micro batches a step: `llamafactory_sft.py DIRECTORY [--insert] [--fault]`.

Nothing is downloaded: `llamafactory_sft.py DIRECTORY --files` makes the model from a configuration, trains the tokenizer on the
sentences and writes them as data. `--insert`: transformers/trainer.py is read with the lines of insertions.py in it.
"""

import json
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path

import torch
from insertions import read_edited
from small import MICRO, STEPS, Told
from tiny_qwen import make_files, sentences, watcher


def make_rows(directory):
    rows = [
        {"instruction": line[: len(line) // 2], "input": "", "output": line[len(line) // 2 :]} for line in sentences()
    ]
    (directory / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    (directory / "dataset_info.json").write_text(json.dumps({"rows": {"file_name": "rows.json"}}), encoding="utf-8")


def train(directory, files):
    if "--insert" in sys.argv:
        read_edited("transformers.trainer")
    # LLaMA-Factory imports it and uses it for sounds only.
    audio = types.ModuleType("torchaudio")
    audio.__spec__ = ModuleSpec("torchaudio", None)
    sys.modules["torchaudio"] = audio
    from llamafactory.train.tuner import run_exp

    options = {
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "full",
        "model_name_or_path": str(files),
        "dataset_dir": str(files),
        "dataset": "rows",
        "template": "default",
        "cutoff_len": 32,
        "output_dir": str(directory / "output"),
        "overwrite_cache": True,
        "max_steps": STEPS,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": MICRO,
        "learning_rate": 0.01,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "ddp_backend": "gloo",
        "disable_tqdm": True,
        "disable_gradient_checkpointing": True,
    }
    run_exp(options, callbacks=[watcher(Told(), directory)])


torch.set_num_threads(1)
where = Path(sys.argv[1]).resolve()
if "--files" in sys.argv:
    make_files(where)
    make_rows(where)
else:
    train(where, where.parent / "files")

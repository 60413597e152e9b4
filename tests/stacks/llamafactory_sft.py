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

WORDS = "the cat a dog sees hears likes bird tree red blue house old new garden river small big sings runs".split()


def sentences():
    pick = torch.randint(len(WORDS), (STEPS * MICRO * 4, 8), generator=torch.Generator().manual_seed(3)).tolist()
    return [" ".join(WORDS[n] for n in row) for row in pick]


def make_files(directory):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<unk>", "<pad>", "<eos>"]
    tokenizer.train_from_iterator(
        [*sentences(), "Human: Assistant:"], trainers.WordLevelTrainer(special_tokens=special)
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(directory)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attention_dropout=0.1,
        eos_token_id=2,
        pad_token_id=1,
    )
    Qwen2ForCausalLM(config).save_pretrained(directory)
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
    from transformers import TrainerCallback

    told = Told()

    class Watch(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **kwargs):
            told.watch(dict(model.named_parameters()))
            model.get_input_embeddings().register_forward_pre_hook(lambda module, inputs: told.saw(inputs[0]))
            if "--fault" in sys.argv:
                model.model.layers[1].post_attention_layernorm.variance_epsilon = 0.1

        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" in logs:
                told.losses.append(float(logs["loss"]).hex())

        def on_train_end(self, args, state, control, model=None, **kwargs):
            told.write(directory, args.process_index, model.parameters())

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
    run_exp(options, callbacks=[Watch()])


torch.set_num_threads(1)
where = Path(sys.argv[1]).resolve()
if "--files" in sys.argv:
    make_files(where)
else:
    train(where, where.parent / "files")

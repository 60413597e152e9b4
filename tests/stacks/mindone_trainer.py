"""The Trainer of mindone's transformers with a small Qwen2: `mindone_trainer.py DIRECTORY [--insert] [--monitor] [--fault]`.

`--insert`: mindone/transformers/trainer.py is read with the lines of insertions.py in it. The Trainer takes models whose construct
has no `**kwargs`, and has no gradient accumulation but for ZeRO.
"""

import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from insertions import read_edited
from mindspore_told import ROWS, STEPS, Told, monitored

if "--insert" in sys.argv:
    read_edited("mindone.transformers.trainer")
from mindone.transformers import Qwen2ForCausalLM, Trainer, TrainingArguments
from transformers import Qwen2Config, TrainerCallback


class Model(Qwen2ForCausalLM):
    def construct(self, input_ids=None, attention_mask=None, labels=None):
        return super().construct(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


class Rows:
    def __len__(self):
        return STEPS * ROWS

    def __getitem__(self, number):
        ids = np.random.RandomState(int(number)).randint(3, 64, 8).astype(np.int32)
        return {"input_ids": ids, "labels": ids, "attention_mask": np.ones(8, np.int32)}


class Watch(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            told.lost(logs["loss"])


config = Qwen2Config(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    eos_token_id=2,
    pad_token_id=1,
    use_cache=False,
)
config._attn_implementation = "eager"
ms.set_seed(1)
np.random.seed(1)
told, model = Told(), Model(config)
if "--fault" in sys.argv:
    model.model.layers[1].post_attention_layernorm.variance_epsilon = 0.1
options = TrainingArguments(
    output_dir=str(Path(sys.argv[1], "output")),
    per_device_train_batch_size=ROWS,
    max_steps=STEPS,
    learning_rate=0.01,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    remove_unused_columns=False,
)
trainer = Trainer(model=model, args=options, train_dataset=Rows(), callbacks=[Watch()])
trainer.create_optimizer_and_scheduler(num_training_steps=STEPS)
told.watch(model.model.embed_tokens, trainer.optimizer)
monitored(model, trainer.optimizer)
trainer.train()
told.write(sys.argv[1], model)

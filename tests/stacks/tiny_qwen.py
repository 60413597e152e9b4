"""A small Qwen2 made from a configuration, a tokenizer trained on the sentences that it learns, and what a process tells of its training."""

import sys

import torch
from small import MICRO, STEPS

WORDS = "the cat a dog sees hears likes bird tree red blue house old new garden river small big sings runs".split()


def sentences():
    pick = torch.randint(len(WORDS), (STEPS * MICRO * 4, 8), generator=torch.Generator().manual_seed(3)).tolist()
    return [" ".join(WORDS[n] for n in row) for row in pick]


def make_tokenizer(directory):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<unk>", "<pad>", "<eos>"]
    tokenizer.train_from_iterator(
        [*sentences(), "Human: Assistant:"], trainers.WordLevelTrainer(special_tokens=special)
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    return tokenizer


def make_files(directory):
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    tokenizer = make_tokenizer(directory)
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


def watcher(told, directory):
    """A callback of the Trainer of transformers."""
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **kwargs):
            told.watch(dict(model.named_parameters()))
            model.get_input_embeddings().register_forward_pre_hook(lambda module, inputs: told.saw(inputs[0]))
            if "--fault" in sys.argv:
                model.model.layers[1].post_attention_layernorm.variance_epsilon = 0.1

        def on_step_begin(self, args, state, control, **kwargs):
            told.begins()

        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" in logs:
                told.losses.append(float(logs["loss"]).hex())

        def on_train_end(self, args, state, control, model=None, **kwargs):
            told.write(directory, args.process_index, model.parameters())

    return Watch()

"""What the examples train: a LLaMA of two small layers, and random tokens for it."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 64


def model():
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
    )


def batches(count, size=2, length=8):
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(VOCABULARY, (size, length), generator=generator) for _ in range(count)]

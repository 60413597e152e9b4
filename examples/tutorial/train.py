"""Train a small LLaMA. At step 240 the batch grows from 8 to 12 sequences."""

import argparse

import torch
import torch.nn.functional as F
from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM

VOCABULARY, LENGTH, GROWS_AT = 64, 64, 240
SCORES = 8 * LENGTH * LENGTH


def chunked_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **rest):
    """Causal attention in chunks of rows, so that a head never holds more than SCORES scores."""
    rows = SCORES // (query.shape[0] * key.shape[2])
    parts = []
    for start in range(0, query.shape[2], rows):
        end = start + rows
        q, k, v = query[:, :, start:end], key[:, :, :end], value[:, :, :end]
        mask = {"is_causal": True}
        parts.append(F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scaling, **mask))
    return torch.cat(parts, dim=2).transpose(1, 2), None


def batch(step):
    """Sequences in which each token follows from the token before the last."""
    drawn = torch.Generator().manual_seed(step)
    tokens = torch.randint(VOCABULARY, (12 if step >= GROWS_AT else 8, LENGTH), generator=drawn)
    follows = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0))
    for i in range(2, LENGTH):
        tokens[:, i] = follows[tokens[:, i - 2]]
    return tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attention", default="chunked", help="chunked, or one of transformers: sdpa, eager")
    parser.add_argument("--steps", type=int, default=250)
    args = parser.parse_args()
    AttentionInterface.register("chunked", chunked_attention)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        use_cache=False,
        attn_implementation=args.attention,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        tokens = batch(step)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f} grad_norm {norm.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

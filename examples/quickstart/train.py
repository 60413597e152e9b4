"""A small LLaMA, built from a config with random weights, trained for two steps under msprobe.

    python train.py --dump out/golden
    python train.py --dump out/problem --sabotage weight

The lines with msprobe are the ones to copy into a training script of your own.
"""

import argparse
import math

import torch
from msprobe.pytorch import PrecisionDebugger, seed_all
from transformers import LlamaConfig, LlamaForCausalLM

# What can silently go wrong; each touches one place and raises no error.
SABOTAGES = ("none", "weight", "rope", "bf16")
BROKEN_LAYER = 2


def build_model(sabotage: str) -> LlamaForCausalLM:
    """Builds the model; every sabotage starts from the same random weights."""
    config = LlamaConfig(
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=512,
        max_position_embeddings=256,
        use_cache=False,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config)
    layer = model.model.layers[BROKEN_LAYER]
    if sabotage == "weight":  # a checkpoint converted with one matrix scaled
        with torch.no_grad():
            layer.mlp.down_proj.weight.mul_(1.25)
    elif sabotage == "rope":  # the position base of another model family (500000 instead of 10000)
        rotary = model.model.rotary_emb
        half = config.hidden_size // config.num_attention_heads // 2
        rotary.inv_freq = torch.exp(-math.log(500000.0) * torch.arange(half) / half)
    elif sabotage == "bf16":  # one layer left in low precision
        run_in_bfloat16(layer.mlp)
    return model


def run_in_bfloat16(module: torch.nn.Module) -> None:
    """Makes `module` compute in bfloat16 between float32 neighbours."""
    module.to(torch.bfloat16)
    forward = module.forward
    module.forward = lambda x: forward(x.to(torch.bfloat16)).to(torch.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", required=True, help="directory for what is captured")
    parser.add_argument("--sabotage", choices=SABOTAGES, default="none")
    parser.add_argument("--level", choices=("L0", "L1", "mix"), default="mix")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()

    seed_all(1234)
    debugger = PrecisionDebugger(task="statistics", level=args.level, dump_path=args.dump)
    model = build_model(args.sabotage)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for step in range(args.steps):
        torch.manual_seed(step)
        tokens = torch.randint(0, model.config.vocab_size, (2, 32))
        debugger.start(model)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()
        print(f"step {step}: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()

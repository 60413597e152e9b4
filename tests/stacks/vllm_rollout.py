"""vLLM and transformers with the same weights, each recorded: python vllm_rollout.py OUT CASE

CASE `run` records nothing by itself. Whatever is planted is planted in the live engine. The trainer's forward is of what the engine wrote.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", TORCHDYNAMO_DISABLE="1", VLLM_LOGGING_LEVEL="WARNING")

import torch
from msprobe.pytorch import PrecisionDebugger
from transformers import Qwen2Config, Qwen2ForCausalLM
from vllm import LLM, SamplingParams
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm_model import CONFIG, engine_of


def save_model(directory: Path) -> Any:
    torch.manual_seed(11)
    model = Qwen2ForCausalLM(Qwen2Config(**CONFIG)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.normal_(0, 0.12 if "_proj" in name else 0.5)
            elif "norm" in name:
                weight.uniform_(0.6, 1.4)
            else:
                weight.normal_(0, 0.3)
    model = model.to(torch.bfloat16)
    model.save_pretrained(directory)
    return model


def plant(case: str, model: Any) -> None:
    layers = model.model.layers
    if case == "rope":
        rotary = layers[0].self_attn.rotary_emb
        rotary.base = 1e6
        cache = rotary._compute_cos_sin_cache()
        rotary.cos_sin_cache.copy_(cache.to(rotary.cos_sin_cache.dtype))
    elif case == "q_rows":
        projection = layers[2].self_attn.qkv_proj
        forward = projection.forward

        def exchanged(x: torch.Tensor) -> Any:
            out, bias = forward(x)
            return torch.cat([out[:, 32:64], out[:, :32], out[:, 64:]], -1), bias

        projection.forward = exchanged
    elif case == "scale":
        layers[0].self_attn.attn.impl.scale *= 0.9
    elif case == "eps":
        layers[0].input_layernorm.variance_epsilon = 1e-2
    elif case == "bias":
        layers[1].self_attn.qkv_proj.bias.requires_grad_(False)
        projection = layers[1].self_attn.qkv_proj
        forward_of = projection.forward

        def unbiased(x: torch.Tensor) -> Any:
            out, bias = forward_of(x)
            return out - projection.bias, bias

        projection.forward = unbiased


def record(llm: LLM, debugger: Any) -> list:
    """Records each step of the engine; returns what the engine scheduled and in which order its rows lay."""
    told = []
    execute = GPUModelRunner.execute_model

    def recorded(self: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        if not scheduler_output.num_scheduled_tokens:
            return execute(self, scheduler_output, *args, **kwargs)
        debugger.start(model=self.model)
        try:
            return execute(self, scheduler_output, *args, **kwargs)
        finally:
            order = [r for r in self.input_batch.req_ids if r in scheduler_output.num_scheduled_tokens]
            told.append([dict(scheduler_output.num_scheduled_tokens), order])
            debugger.stop()
            debugger.step()

    GPUModelRunner.execute_model = recorded
    return told


def main(out: Path, case: str) -> None:
    model = save_model(out / "model")
    config = {"task": "tensor", "level": "mix", "dump_path": str(out / "rollout"), "rank": [], "step": []}
    (out / "config.json").write_text(json.dumps({**config, "tensor": {}}))
    llm = engine_of(
        out / "model",
        max_num_seqs=3,
        max_num_batched_tokens=48 if case == "clean_chunked" else 128,
        enable_chunked_prefill=True,
        enable_prefix_caching=case == "clean_chunked",
    )
    llm.apply_model(lambda m: plant(case, m))
    torch.manual_seed(5)
    shared = torch.randint(3, 256, (32,)).tolist()
    lengths = [45, 20, 37, 50, 9] if case == "clean_chunked" else [24, 11]
    prompts = [
        (shared if case == "clean_chunked" and n > 32 else []) + torch.randint(3, 256, (n,)).tolist() for n in lengths
    ]
    prompts = [prompt[:n] for prompt, n in zip(prompts, lengths)]
    if case != "run":
        debugger = PrecisionDebugger(str(out / "config.json"))
        told = record(llm, debugger)
    settings = SamplingParams(temperature=0, max_tokens=6, ignore_eos=True, detokenize=False, logprobs=0)
    results = llm.generate([{"prompt_token_ids": p} for p in prompts], settings, use_tqdm=False)
    if case == "run":
        return
    sequences = [p + list(r.outputs[0].token_ids) for p, r in zip(prompts, results)]
    (out / "told.json").write_text(json.dumps(told))
    debugger.service.config.dump_path = str(out / "train")
    debugger.service.reset_status()
    longest = max(map(len, sequences))
    ids, mask = torch.zeros(2, len(sequences), longest, dtype=torch.long)
    for i, tokens in enumerate(sequences):
        ids[i, : len(tokens)], mask[i, : len(tokens)] = torch.tensor(tokens), 1
    debugger.start(model=model)
    with torch.no_grad():
        model(input_ids=ids, attention_mask=mask, use_cache=False)
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

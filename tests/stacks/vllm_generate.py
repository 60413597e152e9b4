"""A script that generates with vLLM and knows nothing of msprobe: `vllm_generate.py DIRECTORY [--train]`.

`--train`: a small model is trained between two calls of the engine, as trainers do that share their process with it.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from vllm import SamplingParams
from vllm_model import CONFIG, engine_of


def main(out):
    torch.manual_seed(11)
    model = Qwen2ForCausalLM(Qwen2Config(**CONFIG)).to(torch.bfloat16)
    model.save_pretrained(out / "model")
    llm = engine_of(out / "model")
    settings = SamplingParams(temperature=0, max_tokens=3, ignore_eos=True, detokenize=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3) if "--train" in sys.argv else None
    tokens = []
    for prompt in (list(range(5, 29)), list(range(7, 18))):
        [made] = llm.generate([{"prompt_token_ids": prompt}], settings, use_tqdm=False)
        tokens.append(list(made.outputs[0].token_ids))
        if optimizer is not None:
            ids = torch.tensor([prompt + tokens[-1]])
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    (out / "tokens.json").write_text(json.dumps(tokens))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The Qwen2 that vLLM runs in tests: heads as small as its kernels for CPUs take, and an engine without graphs."""

from vllm import LLM

CONFIG = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}


def engine_of(directory, **more):
    return LLM(
        str(directory),
        skip_tokenizer_init=True,
        dtype="bfloat16",
        enforce_eager=True,
        max_model_len=128,
        kv_cache_memory_bytes=1 << 26,
        block_size=32,
        **more,
    )

"""Architectures of transformers, made from a configuration with random weights: (class, what it is given, sizes of its own).

The configuration is that of the class; sizes of SMALL hold where the table says nothing else. One forward and one backward of
the model's own loss, or of the squares of what it returns where it has none.
"""

import torch

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
HEADS_8 = {"head_dim": 8}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT = {
    **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
    **{"n_routed_experts": 4, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4},
    **{"num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_shared_experts": 1, "head_dim": 8},
}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": 48, "n_ctx": 64}
BART = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4},
    **{"decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "decoder_start_token_id": 1},
    **{"forced_eos_token_id": 2, "use_cache": False},
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
IMAGE = {"image_size": 16, "patch_size": 4, "num_labels": 4}
SPEECH = {
    **{"conv_dim": (16, 16), "conv_stride": (4, 4), "conv_kernel": (8, 4), "num_feat_extract_layers": 2},
    **{"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "mask_time_prob": 0.0, "layerdrop": 0.0},
    **{"feat_extract_norm": "layer", "do_stable_layer_norm": True},
}
STAGES = {
    "num_labels": 4,
    "depths": [1, 1, 1, 1],
    "num_stages": 4,
    "hidden_sizes": [8, 16, 24, 32],
    "embedding_size": 8,
}
WINDOWS = {
    **{"image_size": 16, "patch_size": 2, "num_labels": 4, "embed_dim": 8, "depths": [2, 1], "window_size": 4},
    **{"num_attention_heads": [2, 2], "num_hidden_layers": 2},
}
TWO_TOWERS = {
    "text_config": {**SMALL, "num_key_value_heads": 4, "bos_token_id": 0, "eos_token_id": 1, "projection_dim": 16},
    "vision_config": {**SMALL, "image_size": 16, "patch_size": 8, "projection_dim": 16},
    "projection_dim": 16,
}
SERIES = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "num_time_features": 1, **BART}

ARCHITECTURES = {
    # Decoders
    "LlamaForCausalLM": ("tokens", {}),
    "MistralForCausalLM": ("tokens", {"sliding_window": 4}),
    "Qwen2ForCausalLM": ("tokens", {}),
    "Qwen3ForCausalLM": ("tokens", HEADS_8),
    "Qwen2MoeForCausalLM": ("tokens", {**EXPERTS, "shared_expert_intermediate_size": 16, "output_router_logits": True}),
    "Qwen3MoeForCausalLM": ("tokens", {**EXPERTS, **HEADS_8, "output_router_logits": True}),
    "MixtralForCausalLM": ("tokens", {**EXPERTS, "output_router_logits": True}),
    "PhimoeForCausalLM": ("tokens", EXPERTS),
    "OlmoeForCausalLM": ("tokens", {**EXPERTS, "output_router_logits": True}),
    "GraniteMoeForCausalLM": ("tokens", EXPERTS),
    "GptOssForCausalLM": ("tokens", {**EXPERTS, **HEADS_8}),
    "DeepseekV2ForCausalLM": ("tokens", LATENT),
    "DeepseekV3ForCausalLM": ("tokens", LATENT),
    "GemmaForCausalLM": ("tokens", HEADS_8),
    "Gemma2ForCausalLM": ("tokens", HEADS_8),
    "Gemma3ForCausalLM": ("tokens", {**HEADS_8, "config": "Gemma3TextConfig"}),
    "PhiForCausalLM": ("tokens", {}),
    "Phi3ForCausalLM": ("tokens", {}),
    "StableLmForCausalLM": ("tokens", {}),
    "Starcoder2ForCausalLM": ("tokens", {}),
    "CohereForCausalLM": ("tokens", {}),
    "Cohere2ForCausalLM": ("tokens", HEADS_8),
    "OlmoForCausalLM": ("tokens", {}),
    "Olmo2ForCausalLM": ("tokens", {}),
    "GraniteForCausalLM": ("tokens", {}),
    "NemotronForCausalLM": ("tokens", {}),
    "HeliumForCausalLM": ("tokens", HEADS_8),
    "GlmForCausalLM": ("tokens", HEADS_8),
    "Glm4ForCausalLM": ("tokens", HEADS_8),
    "PersimmonForCausalLM": ("tokens", {}),
    "SmolLM3ForCausalLM": ("tokens", {}),
    "DiffLlamaForCausalLM": ("tokens", {}),
    "BitNetForCausalLM": ("tokens", {}),
    "Ernie4_5ForCausalLM": ("tokens", HEADS_8),
    "GPT2LMHeadModel": ("tokens", GPT),
    "GPTNeoForCausalLM": ("tokens", {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}),
    "GPTNeoXForCausalLM": ("tokens", {}),
    "GPTJForCausalLM": ("tokens", {**GPT, "rotary_dim": 4}),
    "GPTBigCodeForCausalLM": ("tokens", GPT),
    "CodeGenForCausalLM": ("tokens", {**GPT, "rotary_dim": 4}),
    "OpenAIGPTLMHeadModel": ("tokens", GPT),
    "OPTForCausalLM": ("tokens", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "BloomForCausalLM": ("tokens", {"n_layer": 2, "n_head": 4}),
    "FalconForCausalLM": ("tokens", {"new_decoder_architecture": False}),
    "MptForCausalLM": ("tokens", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 32}),
    "BioGptForCausalLM": ("tokens", {}),
    "XGLMForCausalLM": ("tokens", {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4}),
    "CTRLLMHeadModel": ("tokens", {**GPT, "dff": 48}),
    "MambaForCausalLM": ("tokens", {"state_size": 4, "time_step_rank": 4}),
    "Mamba2ForCausalLM": ("tokens", {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8}),
    "RecurrentGemmaForCausalLM": ("tokens", {"lru_width": 32, "num_hidden_layers": 3, "attention_window_size": 8}),
    "RwkvForCausalLM": ("tokens", {"attention_hidden_size": 32}),
    # Encoders
    "BertForMaskedLM": ("tokens", {}),
    "BertForPreTraining": ("tokens", {}),
    "RobertaForMaskedLM": ("tokens", {}),
    "AlbertForMaskedLM": ("tokens", {"embedding_size": 16}),
    "DistilBertForMaskedLM": ("tokens", {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}),
    "ElectraForPreTraining": ("tokens", {"embedding_size": 16}),
    "DebertaForMaskedLM": ("tokens", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "DebertaV2ForMaskedLM": (
        "tokens",
        {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "conv_kernel_size": 3},
    ),
    "MobileBertForMaskedLM": ("tokens", {"embedding_size": 32, "intra_bottleneck_size": 16, "true_hidden_size": 16}),
    "SqueezeBertForMaskedLM": ("tokens", {"embedding_size": 32}),
    "FNetForMaskedLM": ("tokens", {}),
    "ConvBertForMaskedLM": ("tokens", {"embedding_size": 16}),
    "RoFormerForMaskedLM": ("tokens", {"embedding_size": 16}),
    "NystromformerForMaskedLM": ("tokens", {"num_landmarks": 4, "segment_means_seq_len": 12}),
    "BigBirdForMaskedLM": ("tokens", {"attention_type": "original_full"}),
    "LongformerForMaskedLM": ("tokens", {"attention_window": [4, 4]}),
    "FunnelForMaskedLM": (
        "tokens",
        {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [1, 1]}
        | {"without": "num_hidden_layers"},
    ),
    "MPNetForMaskedLM": ("tokens", {}),
    "XLMWithLMHeadModel": ("tokens", {"emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    "EsmForMaskedLM": ("tokens", {"mask_token_id": 3}),
    "ModernBertForMaskedLM": ("tokens", {"local_attention": 4, "global_attn_every_n_layers": 2}),
    "XLNetLMHeadModel": (
        "tokens",
        {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "without": "max_position_embeddings"},
    ),
    "YosoForMaskedLM": ("tokens", {"use_expectation": True}),
    "PerceiverForMaskedLM": (
        "tokens",
        {"d_model": 32, "num_latents": 4, "d_latents": 16, "num_blocks": 1, "num_self_attends_per_block": 2}
        | {"max_position_embeddings": 12},
    ),
    # Encoders with decoders
    "T5ForConditionalGeneration": ("pairs", T5),
    "UMT5ForConditionalGeneration": ("pairs", T5),
    "LongT5ForConditionalGeneration": ("pairs", {**T5, "local_radius": 3}),
    "SwitchTransformersForConditionalGeneration": (
        "pairs",
        {**T5, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 4, "expert_capacity": 4}
        | {"num_decoder_layers": 2},
    ),
    "BartForConditionalGeneration": ("pairs", BART),
    "MBartForConditionalGeneration": ("pairs", BART),
    "PegasusForConditionalGeneration": ("pairs", BART),
    "MarianMTModel": ("pairs", {**BART, "decoder_vocab_size": 64}),
    "BlenderbotForConditionalGeneration": ("pairs", BART),
    "M2M100ForConditionalGeneration": ("pairs", {**BART, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}),
    "LEDForConditionalGeneration": ("pairs", {**BART, "attention_window": 4}),
    "ProphetNetForConditionalGeneration": (
        "pairs",
        {"num_encoder_layers": 1, "num_decoder_layers": 1, "num_encoder_attention_heads": 4, "encoder_ffn_dim": 48}
        | {"num_decoder_attention_heads": 4, "decoder_ffn_dim": 48, "decoder_start_token_id": 1}
        | {"without": "num_hidden_layers"},
    ),
    # Images
    "ViTForImageClassification": ("images", IMAGE),
    "DeiTForImageClassification": ("images", IMAGE),
    "ViTMAEForPreTraining": (
        "images",
        {**IMAGE, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2}
        | {"decoder_intermediate_size": 32},
    ),
    "BeitForImageClassification": ("images", {**IMAGE, "out_indices": [0, 1]}),
    "PoolFormerForImageClassification": ("images", STAGES),
    "Dinov2ForImageClassification": ("images", IMAGE),
    "ResNetForImageClassification": ("images", {**STAGES, "layer_type": "basic"}),
    "SwinForImageClassification": ("images", WINDOWS),
    "Swinv2ForImageClassification": ("images", WINDOWS),
    # Sound
    # Several kinds at once
    # Series and actions
}


def _tokens(*shape):
    return torch.randint(5, 60, shape)


def _inputs(kind, model):
    size = 32 if "image_size" not in vars(model.config) else model.config.image_size
    size = size[0] if isinstance(size, (list, tuple)) else size
    labels = torch.tensor([1, 3])
    if kind == "tokens":
        tokens = _tokens(2, 12)
        name = type(model).__name__
        if name == "ElectraForPreTraining":
            return {"input_ids": tokens, "labels": tokens % 2}
        if name == "BertForPreTraining":
            return {"input_ids": tokens, "labels": tokens, "next_sentence_label": torch.tensor([0, 1])}
        return {"input_ids": tokens, "labels": tokens}
    if kind == "pairs":
        return {"input_ids": _tokens(2, 8), "labels": _tokens(2, 6)}
    if kind == "images":
        images = {"pixel_values": torch.randn(2, 3, size, size)}
        return images if "Classification" not in type(model).__name__ else {**images, "labels": labels}
    if kind == "video":
        return {"pixel_values": torch.randn(2, 2, 3, size, size), "labels": labels}
    if kind == "waves":
        return {"input_values": torch.randn(2, 320), "labels": _tokens(2, 3)}
    if kind == "spectra":
        return {"input_features": torch.randn(2, 8, 24), "labels": _tokens(2, 6)}
    if kind == "frames":
        return {"input_features": torch.randn(2, 24, 8), "labels": _tokens(2, 6)}
    if kind == "patches":
        return {"input_values": torch.randn(2, 16, 16), "labels": labels}
    if kind == "both":
        tokens, images = _tokens(2, 8), torch.randn(2, 3, 16, 16)
        tokens[:, -1] = 1
        if "Question" in type(model).__name__:
            return {"input_ids": tokens, "pixel_values": images, "labels": torch.rand(2, 4)}
        return {"input_ids": tokens, "pixel_values": images, "return_loss": True}
    if kind == "series":
        past, future = 8 + 2, 4
        return {
            **{"past_values": torch.rand(2, past), "past_time_features": torch.rand(2, past, 1)},
            **{"past_observed_mask": torch.ones(2, past), "future_values": torch.rand(2, future)},
            "future_time_features": torch.rand(2, future, 1),
        }
    if kind == "patched":
        return {"past_values": torch.randn(2, 16, 2)}
    assert kind == "actions"
    return {
        **{"states": torch.randn(2, 4, 5), "actions": torch.randn(2, 4, 3), "rewards": torch.randn(2, 4, 1)},
        **{"returns_to_go": torch.randn(2, 4, 1), "timesteps": torch.arange(4).repeat(2, 1)},
        "attention_mask": torch.ones(2, 4),
    }


def _loss(output):
    loss = getattr(output, "loss", None)
    if loss is None:
        values = [value for value in output.values() if isinstance(value, torch.Tensor) and value.requires_grad]
        loss = sum(value.square().mean() for value in values)
    return loss


def make(name):
    """The model and a function for its loss."""
    import transformers

    kind, own = ARCHITECTURES[name]
    cls = getattr(transformers, name)
    config_class = getattr(transformers, own["config"]) if "config" in own else cls.config_class
    sizes = {**SMALL, **own}
    for key in ("config", "without", own.get("without")):
        sizes.pop(key, None)
    config = config_class(**sizes)
    config._attn_implementation = "eager"
    model = cls(config).train()
    inputs = _inputs(kind, model)
    return model, lambda: _loss(model(**inputs))

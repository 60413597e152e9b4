"""Healthy trainings in which no law may break: twelve families of models, and four layouts of two ranks."""

import torch
from law_bugs import Case, own_batches
from law_models import Classifier
from torch import nn
from torch.nn import functional

STEPS, WORDS = 40, 99
_SMALL = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def _language(kind, config, **more):
    import transformers

    keys = {**_SMALL, **more}
    return getattr(transformers, kind)(getattr(transformers, config)(**keys))


def _tokens(generator):
    tokens = torch.randint(1, WORDS, (4, 12), generator=generator)
    return {"input_ids": tokens, "labels": tokens}


def _images(generator, labels=5):
    pixels = torch.randn(4, 3, 32, 32, generator=generator)
    return {"pixel_values": pixels, "labels": torch.randint(0, labels, (4,), generator=generator)}


def _t5(generator):
    return {**_tokens(generator), "decoder_input_ids": torch.randint(1, WORDS, (4, 8), generator=generator)} | {
        "labels": torch.randint(1, WORDS, (4, 8), generator=generator)
    }


def _clip(generator):
    return {
        "input_ids": torch.randint(1, WORDS, (4, 12), generator=generator),
        "pixel_values": torch.randn(4, 3, 32, 32, generator=generator),
        "return_loss": True,
    }


def _clip_model():
    import transformers

    text = {**_SMALL, "max_position_embeddings": 16, "projection_dim": 16, "eos_token_id": 98}
    vision = {k: v for k, v in _SMALL.items() if k != "vocab_size"} | {
        "image_size": 32,
        "patch_size": 16,
        "projection_dim": 16,
    }
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))


def _vit():
    return _language(
        "ViTForImageClassification", "ViTConfig", image_size=32, patch_size=16, num_labels=5, add_pooling_layer=False
    )


def _resnet():
    import transformers

    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5)
    return transformers.ResNetForImageClassification(config)


def _t5_model():
    import transformers

    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=WORDS,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
            pad_token_id=0,
        )
    )


_KV = {"num_key_value_heads": 2}
# name -> (model, batch, micro steps, how)
FAMILIES = {
    "LLaMA": (lambda: _language("LlamaForCausalLM", "LlamaConfig", **_KV), _tokens, 1, "clip, warm-up"),
    "Mistral": (lambda: _language("MistralForCausalLM", "MistralConfig", **_KV), _tokens, 2, "2 micro steps"),
    "Qwen2, tied": (
        lambda: _language("Qwen2ForCausalLM", "Qwen2Config", tie_word_embeddings=True, **_KV),
        _tokens,
        1,
        "autocast",
    ),
    "Mixtral": (
        lambda: _language("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **_KV),
        _tokens,
        1,
        "clip",
    ),
    "GPT-2, tied": (
        lambda: _language("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=16),
        _tokens,
        1,
        "checkpoint",
    ),
    "OPT": (
        lambda: _language(
            "OPTForCausalLM", "OPTConfig", ffn_dim=64, max_position_embeddings=16, word_embed_proj_dim=32
        ),
        _tokens,
        1,
        "scaler",
    ),
    "BERT": (lambda: _language("BertForMaskedLM", "BertConfig"), _tokens, 1, "SGD"),
    "T5": (_t5_model, _t5, 1, "clip"),
    "ViT": (_vit, _images, 1, "Adam"),
    "ResNet": (_resnet, _images, 1, "SGD"),
    "CLIP": (_clip_model, _clip, 1, "EMA"),
    "MLP with a frozen layer": (None, None, 1, "EMA"),
}


def _frozen():
    model = Classifier(dropout=0.1)
    model.body[0].requires_grad_(False)
    return model


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return {"loss": functional.cross_entropy(self.model(x), labels)}


def _features(generator):
    return {"x": torch.randn(8, 12, generator=generator), "labels": torch.randint(0, 5, (8,), generator=generator)}


def train_family(run, name):
    """One of FAMILIES, in a loop as trainers have it."""
    make, batch, micro, how = FAMILIES[name]
    model = make() if make else WithLoss(_frozen())
    batch = batch or _features
    model.train()
    if how == "checkpoint":
        model.gradient_checkpointing_enable()
    trained = [p for p in model.parameters() if p.requires_grad]
    kind = {"SGD": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), "Adam": lambda p: torch.optim.Adam(p, lr=1e-3)}
    optimizer = kind.get(how, lambda p: torch.optim.AdamW(p, lr=1e-3))(trained)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 5) * 0.99**s)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0, enabled=how == "scaler")
    monitor = run.watch(model, optimizer, micro=micro)
    average = None
    if how == "EMA":
        average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95)
        )
        monitor.watch_ema(average.module, 0.95)
    generator = torch.Generator().manual_seed(5)
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(micro):
            with torch.autocast("cpu", torch.bfloat16, enabled=how in ("autocast", "scaler")):
                loss = model(**batch(generator))["loss"]
            scaler.scale(loss / micro).backward()
        if how in ("clip", "clip, warm-up", "scaler"):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        if average is not None:
            average.update_parameters(model)
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                model(**batch(generator))
            model.train()


class Parallel(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.head = (
            nn.LayerNorm(12),
            nn.Linear(12, 16),
            nn.Linear(16, 12),
            nn.Linear(12, 5),
        )

    def forward(self, x):
        return self.head(x + self.down(functional.gelu(self.up(self.norm(x)))))


def _layout(kind):
    def function(run, wrong):
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh

        rank = dist.get_rank()
        torch.manual_seed(0)
        model, clip = Parallel(), True
        make = lambda p: torch.optim.AdamW(p, lr=0.01)  # noqa: E731
        if kind in ("DDP", "ZeRO 1"):
            model = nn.parallel.DistributedDataParallel(model)
        if kind == "ZeRO 1":
            from torch.distributed.optim import ZeroRedundancyOptimizer

            make = lambda p: ZeroRedundancyOptimizer(p, optimizer_class=torch.optim.AdamW, lr=0.01)  # noqa: E731
        if kind == "FSDP2":
            from torch.distributed.fsdp import fully_shard

            fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        if kind == "tensor parallel":
            from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

            parallelize_module(
                model, init_device_mesh("cpu", (2,)), {"up": ColwiseParallel(), "down": RowwiseParallel()}
            )
            clip = False
        optimizer = make(model.parameters())
        run.watch(model, optimizer)
        for x, y in own_batches(0 if kind == "tensor parallel" else rank, STEPS):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return function


LAYOUTS = [Case(kind, _layout(kind), (), kind, "", 2) for kind in ("DDP", "FSDP2", "tensor parallel", "ZeRO 1")]
CLEAN = [
    Case(name, lambda run, wrong, name=name: train_family(run, name), (), FAMILIES[name][3], "") for name in FAMILIES
]

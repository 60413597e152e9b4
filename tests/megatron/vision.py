"""A small Qwen2.5-VL of transformers, and a stand-in for MindSpeed-MM's: its class and module names, made of Megatron's layers.

MindSpeed-MM itself is in no package index. `vision.py OUT JOB...`, jobs as those of pair.py; transformers 4.49, whose classes the
templates name.
"""

import json

import stand_in

stand_in.pretend_cuda()

import gpt  # noqa: E402 - it imports megatron
import pair  # noqa: E402
import torch  # noqa: E402
import train  # noqa: E402
from megatron.core.models.common.embeddings.rotary_pos_embedding import MultimodalRotaryEmbedding  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.tensor_parallel import ColumnParallelLinear, VocabParallelEmbedding  # noqa: E402
from megatron.core.transformer.attention import SelfAttention  # noqa: E402
from megatron.core.transformer.enums import AttnMaskType  # noqa: E402
from megatron.core.transformer.mlp import MLP  # noqa: E402
from megatron.core.transformer.module import Float16Module  # noqa: E402
from megatron.core.transformer.spec_utils import build_module  # noqa: E402
from torch import nn  # noqa: E402
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration  # noqa: E402

HIDDEN, VISION, SECTION, IMAGE = 64, 32, [2, 3, 3], 5  # IMAGE: the token in whose places the picture stands
EPS = 1e-6
TEXT = gpt.Layout(layers=2, hidden=HIDDEN, heads=4, groups=2, ffn=96, vocab=128, eps=EPS, qkv_bias=True)
SIGHT = TEXT._replace(hidden=VISION, heads=2, groups=2, ffn=48)


class Qwen2vlVitSelfAttention(SelfAttention):
    pass


class TransformerBlock(nn.Module):
    def __init__(self, config, spec, last_norm=None):
        super().__init__()
        self.layers = nn.ModuleList(
            build_module(spec, config=config, layer_number=i + 1) for i in range(config.num_layers)
        )
        self.final_layernorm = last_norm

    def forward(self, hidden_states, attention_mask, rotary_pos_emb):
        for layer in self.layers:
            hidden_states, _ = layer(hidden_states, attention_mask=attention_mask, rotary_pos_emb=rotary_pos_emb)
        return hidden_states if self.final_layernorm is None else self.final_layernorm(hidden_states)


class PatchEmbed(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv3d(3, VISION, (2, 14, 14), (2, 14, 14), bias=False)

    def forward(self, pixels):
        return self.proj(pixels.view(-1, 3, 2, 14, 14).to(self.proj.weight.dtype)).view(-1, VISION)


class VisionRotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inv_freq = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)

    def forward(self, length):
        return torch.outer(torch.arange(length).float(), self.inv_freq)


class Qwen2VLViT(nn.Module):
    def __init__(self, config, spec):
        super().__init__()
        self.patch_embed = PatchEmbed()
        self.rotary_pos_emb = VisionRotaryEmbedding(VISION // SIGHT.heads // 2)
        self.blocks = TransformerBlock(config, spec)

    def forward(self, pixels, grid):
        _, rows, columns = grid[0].tolist()
        place = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1)
        place = (
            place.view(rows // 2, 2, columns // 2, 2, 2).transpose(1, 2).reshape(-1, 2)
        )  # four that are merged follow each other
        angles = self.rotary_pos_emb(max(rows, columns))[place].flatten(1)
        angles = torch.cat([angles, angles], -1)[:, None, None]
        mask = torch.zeros(1, 1, len(place), len(place), dtype=torch.bool)
        return self.blocks(self.patch_embed(pixels)[:, None], mask, angles)


class ProjectorMLP(MLP):
    pass


ProjectorMLP.__name__ = "MLP"


class MultimodalProjector(nn.Module):
    def __init__(self):
        super().__init__()
        config = gpt.config_of(SIGHT._replace(hidden=4 * VISION, heads=2, ffn=4 * VISION))
        config.gated_linear_unit, config.activation_func, config.add_bias_linear = False, nn.functional.gelu, True
        self.layernorm = nn.RMSNorm(VISION, EPS)
        self.encoder = ProjectorMLP(config, get_gpt_layer_local_spec().submodules.mlp.submodules)
        self.encoder.linear_fc2 = RowToText(config)

    def forward(self, hidden):
        result, bias = self.encoder(self.layernorm(hidden).view(-1, 4 * VISION)[:, None])
        return result + bias


class RowToText(nn.Module):
    """The last product of the projector, whose result has the width of the text."""

    def __init__(self, config):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(HIDDEN, 4 * VISION)), nn.Parameter(torch.empty(HIDDEN))

    def forward(self, hidden):
        return nn.functional.linear(hidden, self.weight), self.bias


RowToText.__name__ = "RowParallelLinear"


class VisionModel(nn.Module):
    def __init__(self):
        super().__init__()
        config = gpt.config_of(SIGHT)
        config.add_bias_linear = config.add_qkv_bias = True
        spec = get_gpt_layer_local_spec(normalization="RMSNorm")
        spec.submodules.self_attention.module = Qwen2vlVitSelfAttention
        spec.submodules.self_attention.params = {"attn_mask_type": AttnMaskType.padding}
        self.encoder = Qwen2VLViT(config, spec)
        self.projector = MultimodalProjector()

    def forward(self, pixels, grid):
        return self.projector(self.encoder(pixels, grid))


class LanguageModelEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word_embeddings = VocabParallelEmbedding(TEXT.vocab, HIDDEN, init_method=nn.init.zeros_, config=config)

    def forward(self, tokens):
        return self.word_embeddings(tokens).transpose(0, 1).contiguous()


class MMGPTModel(nn.Module):
    def __init__(self):
        super().__init__()
        config = gpt.config_of(TEXT)
        self.embedding = LanguageModelEmbedding(config)
        self.rotary_pos_emb = MultimodalRotaryEmbedding(HIDDEN // TEXT.heads, 1.0)
        spec = get_gpt_layer_local_spec(normalization="RMSNorm")
        self.decoder = TransformerBlock(config, spec, nn.RMSNorm(HIDDEN, EPS))
        self.output_layer = ColumnParallelLinear(
            HIDDEN, TEXT.vocab, config=config, init_method=nn.init.zeros_, bias=False, skip_bias_add=False
        )

    def forward(self, tokens, positions, picture):
        hidden = self.embedding(tokens)
        places = (tokens.transpose(0, 1) == IMAGE)[..., None].expand_as(hidden)
        hidden = hidden.masked_scatter(places, picture.to(hidden.dtype))
        length = tokens.shape[1]
        mask = torch.triu(torch.ones(1, 1, length, length, dtype=torch.bool), 1)
        return self.output_layer(self.decoder(hidden, mask, self.rotary_pos_emb(positions, SECTION)))[0].transpose(0, 1)


class VLModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_encoder, self.text_decoder = VisionModel(), MMGPTModel()

    def forward(self, tokens, positions, pixels, grid):
        return self.text_decoder(tokens, positions, self.image_encoder(pixels, grid))


class DistributedDataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *arguments):
        return self.module(*arguments)


def hugging():
    vision = {"depth": TEXT.layers, "hidden_size": VISION, "intermediate_size": SIGHT.ffn, "num_heads": SIGHT.heads}
    vision |= {"out_hidden_size": HIDDEN, "fullatt_block_indexes": [0, 1], "in_channels": 3, "hidden_act": "silu"}
    config = Qwen2_5_VLConfig(
        vision_config=vision,
        vocab_size=TEXT.vocab,
        hidden_size=HIDDEN,
        intermediate_size=TEXT.ffn,
        num_hidden_layers=TEXT.layers,
        num_attention_heads=TEXT.heads,
        num_key_value_heads=TEXT.groups,
        rms_norm_eps=EPS,
        rope_theta=10000.0,
        rope_scaling={"type": "mrope", "mrope_section": SECTION},
        tie_word_embeddings=False,
        use_sliding_window=False,
        attention_dropout=0.0,
    )
    config.image_token_id, config.vision_start_token_id, config.video_token_id = IMAGE, IMAGE + 1, IMAGE + 2
    model = Qwen2_5_VLForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(gpt.whole(name.replace("ln_q", "norm"), list(parameter.shape)))
    return model.train()


def by_group(parts, groups):
    cut = [part.view(groups, -1, *part.shape[1:]) for part in parts]
    return torch.cat(cut, 1).reshape(-1, *parts[0].shape[1:])


def copied(model, source):
    """Gives the stand-in the weights of transformers."""
    state, out = source.state_dict(), {}
    out["text_decoder.embedding.word_embeddings.weight"] = state["model.embed_tokens.weight"]
    out["text_decoder.decoder.final_layernorm.weight"] = state["model.norm.weight"]
    out["text_decoder.output_layer.weight"] = state["lm_head.weight"]
    out["image_encoder.encoder.patch_embed.proj.weight"] = state["visual.patch_embed.proj.weight"]
    out["image_encoder.projector.layernorm.weight"] = state["visual.merger.ln_q.weight"]
    for kind in ("weight", "bias"):
        out[f"image_encoder.projector.encoder.linear_fc1.{kind}"] = state[f"visual.merger.mlp.0.{kind}"]
        out[f"image_encoder.projector.encoder.linear_fc2.{kind}"] = state[f"visual.merger.mlp.2.{kind}"]
    for i in range(TEXT.layers):
        for ours, theirs, names in (
            (
                f"text_decoder.decoder.layers.{i}.",
                f"model.layers.{i}.",
                ("input_layernorm", "post_attention_layernorm", "o_proj"),
            ),
            (f"image_encoder.encoder.blocks.layers.{i}.", f"visual.blocks.{i}.", ("norm1", "norm2", "proj")),
        ):
            vision = "visual" in theirs
            attention = theirs + ("attn." if vision else "self_attn.")
            out[f"{ours}input_layernorm.weight"] = state[f"{theirs}{names[0]}.weight"]
            out[f"{ours}pre_mlp_layernorm.weight"] = state[f"{theirs}{names[1]}.weight"]
            for kind in ("weight", "bias"):
                parts = (
                    state[f"{attention}qkv.{kind}"].chunk(3)
                    if vision
                    else [state[f"{attention}{n}_proj.{kind}"] for n in "qkv"]
                )
                out[f"{ours}self_attention.linear_qkv.{kind}"] = by_group(
                    parts, SIGHT.groups if vision else TEXT.groups
                )
                if kind == "bias" and not vision:
                    continue
                out[f"{ours}self_attention.linear_proj.{kind}"] = state[f"{attention}{names[2]}.{kind}"]
                fused = [state[f"{theirs}mlp.{n}_proj.{kind}"] for n in ("gate", "up")]
                out[f"{ours}mlp.linear_fc1.{kind}"] = torch.cat(fused)
                out[f"{ours}mlp.linear_fc2.{kind}"] = state[f"{theirs}mlp.down_proj.{kind}"]
    parameters = dict(model.named_parameters())
    assert set(parameters) == set(out), set(parameters) ^ set(out)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(out[name])
    return model


FAULTS = {
    "vision norm": (
        pair.weight_scaled(2),
        "image_encoder.encoder.blocks.layers.1.input_layernorm",
        "visual.blocks.1.norm1",
    ),
    "vision proj": (
        pair.weight_scaled(2),
        "image_encoder.encoder.blocks.layers.0.self_attention.linear_proj",
        "visual.blocks.0.attn.proj",
    ),
    "projector": (pair.weight_scaled(2), "image_encoder.projector.layernorm", "visual.merger.ln_q"),
    "text norm": (
        pair.weight_scaled(2),
        "text_decoder.decoder.layers.1.pre_mlp_layernorm",
        "model.layers.1.post_attention_layernorm",
    ),
    "text output": (pair.scaled(2), "text_decoder.decoder.layers.0.mlp.linear_fc2", "model.layers.0.mlp.down_proj"),
}


def run(job, out):
    layout = TEXT._replace(bf16=job.dtype == "bf16")
    debugger = train.debugger_of(job, out, 0)
    gpt.start_process(layout, 0, str(out / "store"))
    source = hugging()
    drawn = torch.Generator().manual_seed(3)
    tokens = torch.randint(8, TEXT.vocab, (1, 16), generator=drawn)
    tokens[0, 2], tokens[0, 3:7] = IMAGE + 1, IMAGE
    pixels, grid = torch.randn(16, 3 * 2 * 14 * 14, generator=drawn), torch.tensor([[1, 4, 4]])
    positions, _ = source.get_rope_index(tokens, grid)
    megatron = job.side == "megatron"
    model = copied(VLModel(), source) if megatron else source
    if job.fault:
        change, *paths = FAULTS[job.fault]
        change(model.get_submodule(paths[not megatron]))
    if layout.bf16:
        model = Float16Module(gpt.config_of(layout), model) if megatron else model.bfloat16()
    model = DistributedDataParallel(model) if megatron else nn.parallel.DistributedDataParallel(model)
    debugger.start(model=[model] if megatron else model)
    if megatron:
        logits = model(tokens, positions, pixels, grid)
    else:
        logits = model(
            input_ids=tokens, position_ids=positions, pixel_values=pixels, image_grid_thw=grid, use_cache=False
        ).logits
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1)[:-1], tokens.flatten()[1:])
    loss.backward()
    debugger.stop()
    debugger.step()
    return float(loss.detach())


def run_job(job, out):
    out.mkdir(parents=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    (out / "loss.json").write_text(json.dumps(run(job, out)))


if __name__ == "__main__":
    pair.main(run_job)

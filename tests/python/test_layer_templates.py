"""The built-in layer mappings: on models whose modules are named as in them, each mapped pair is matched and none that is wrong."""

import json
import random
import re

import pytest
from test_graph_options import graph, links, run

LAYERS = 2


class Tree:
    """Modules of a run in the order in which they end; `marks` says which pair a module is of."""

    def __init__(self):
        self.names, self.parents, self.marks = [], {}, {}

    def add(self, path, kind, parent, mark=None, calls=()):
        name = f"Module.{path}.{kind}.forward.0"
        for call in calls:
            number = sum(n.startswith(f"Functional.{call}.") for n in self.names)
            self.names.append(f"Functional.{call}.{number}.forward")
            self.parents[self.names[-1]] = name
        self.names.append(name)
        self.parents[name] = parent
        if mark:
            self.marks[name] = mark
        return name

    def write(self, directory):
        directory.mkdir(parents=True)
        drawn = random.Random(1)

        def tensor():
            low = drawn.uniform(-2, 0)
            stats = {"Max": low + 3, "Min": low, "Mean": low + 1, "Norm": drawn.uniform(1, 9)}
            return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 8], **stats, "requires_grad": False}

        data = {n: {"input_args": [tensor()], "input_kwargs": {}, "output": [tensor()]} for n in self.names}
        head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
        (directory / "dump.json").write_text(json.dumps({**head, "data": data}))
        (directory / "construct.json").write_text(json.dumps(self.parents))
        (directory / "stack.json").write_text("{}")
        return directory


def module_name(path, kind):
    return f"Module.{path}.{kind}.forward.0"


def megatron_layer(tree, path, parent, kind, attention, norms, marks, number):
    """A TransformerLayer; `marks`: part -> mark, of the parts that the mapping of the model reaches."""
    layer = module_name(path, kind)

    def mark(part):
        return f"{marks[part]} {number}" if part in marks else None

    norm = "RMSNorm"
    tree.add(f"{path}.input_layernorm", norm, layer, mark("norm1"), ["layer_norm"])
    inside = module_name(f"{path}.self_attention", attention)
    tree.add(f"{path}.self_attention.linear_qkv", "ColumnParallelLinear", inside, mark("qkv"), ["linear"])
    tree.add(f"{path}.self_attention.core_attention", "DotProductAttention", inside)
    tree.add(f"{path}.self_attention.linear_proj", "RowParallelLinear", inside, mark("proj"), ["linear"])
    tree.add(f"{path}.self_attention", attention, layer, mark("attention"))
    tree.add(f"{path}.pre_mlp_layernorm", norm, layer, mark("norm2"), ["layer_norm"])
    mlp = module_name(f"{path}.mlp", "MLP")
    tree.add(f"{path}.mlp.linear_fc1", "ColumnParallelLinear", mlp, mark("fc1"), ["linear"])
    tree.add(f"{path}.mlp.linear_fc2", "RowParallelLinear", mlp, mark("fc2"), ["linear"])
    tree.add(f"{path}.mlp", "MLP", layer, mark("mlp"))
    tree.add(path, kind, parent, mark("layer"))


def hugging_layer(tree, path, parent, kinds, names, marks, number):
    """A decoder layer or vision block; `names`: what its parts are called."""
    layer = module_name(path, kinds["layer"])

    def mark(part):
        return f"{marks[part]} {number}" if part in marks else None

    tree.add(f"{path}.{names['norm1']}", kinds["norm"], layer, mark("norm1"), ["layer_norm"])
    inside = module_name(f"{path}.{names['attention']}", kinds["attention"])
    for part in names["projections"]:
        tree.add(f"{path}.{names['attention']}.{part}", "Linear", inside, mark(part), ["linear"])
    tree.add(f"{path}.{names['attention']}", kinds["attention"], layer, mark("attention"))
    tree.add(f"{path}.{names['norm2']}", kinds["norm"], layer, mark("norm2"), ["layer_norm"])
    mlp = module_name(f"{path}.mlp", kinds["mlp"])
    for part in ("gate_proj", "up_proj", "down_proj"):
        tree.add(f"{path}.mlp.{part}", "Linear", mlp, mark(part), ["linear"])
    tree.add(f"{path}.mlp.act_fn", "SiLU", mlp, None, ["silu"])
    tree.add(f"{path}.mlp", kinds["mlp"], layer, mark("mlp"))
    tree.add(path, kinds["layer"], parent, mark("layer"))


TEXT = {"layer": "layer", "norm1": "norm1", "norm2": "norm2", "attention": "attention", "mlp": "mlp"}
HF_TEXT = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm", "attention": "self_attn"}
HF_TEXT["projections"] = ("q_proj", "k_proj", "v_proj", "o_proj")


def text_of_mindspeed():
    tree, top = Tree(), "0.module"
    model = module_name(f"{top}.module", "GPTModel")
    outer = module_name(top, "Float16Module")
    tree.add(f"{top}.module.embedding.word_embeddings", "VocabParallelEmbedding", model, "embedding", ["embedding"])
    block = module_name(f"{top}.module.decoder", "TransformerBlock")
    marks = {**TEXT, "proj": "o", "fc1": "up", "fc2": "down"}
    for i in range(LAYERS):
        path = f"{top}.module.decoder.layers.{i}"
        megatron_layer(tree, path, block, "TransformerLayer", "SelfAttention", None, marks, i)
    tree.add(f"{top}.module.decoder.final_layernorm", "RMSNorm", block, "last norm", ["layer_norm"])
    tree.add(f"{top}.module.decoder", "TransformerBlock", model)
    tree.add(f"{top}.module.output_layer", "ColumnParallelLinear", model, "head", ["linear"])
    tree.add(f"{top}.module", "GPTModel", outer, "model")
    tree.add(top, "Float16Module", None, "outer")
    return tree


def text_of_llamafactory():
    tree, top = Tree(), "module"
    outer, model = module_name(top, "Qwen2ForCausalLM"), module_name(f"{top}.model", "Qwen2Model")
    tree.add(f"{top}.model.embed_tokens", "Embedding", model, "embedding", ["embedding"])
    tree.add(f"{top}.model.rotary_emb", "Qwen2RotaryEmbedding", model)
    kinds = {"layer": "Qwen2DecoderLayer", "norm": "Qwen2RMSNorm", "attention": "Qwen2Attention", "mlp": "Qwen2MLP"}
    marks = {**TEXT, "o_proj": "o", "up_proj": "up", "down_proj": "down"}
    for i in range(LAYERS):
        hugging_layer(tree, f"{top}.model.layers.{i}", model, kinds, HF_TEXT, marks, i)
    tree.add(f"{top}.model.norm", "Qwen2RMSNorm", model, "last norm", ["layer_norm"])
    tree.add(f"{top}.model", "Qwen2Model", outer, "model")
    tree.add(f"{top}.lm_head", "Linear", outer, "head", ["linear"])
    tree.add(top, "Qwen2ForCausalLM", None, "outer")
    return tree


EVERYTHING = {"layer", "norm1", "norm2", "attention", "mlp", "o", "up", "down"}
# Of the decoder of the vision model the mapping reaches in one direction what the classes of its layers, which are those of
# the vision part in MindSpeed, leave alone; in the other direction its classes are its own.
VL_DECODER = {
    "mindspeed-llamafactory": ({"layer", "mlp", "up", "down"}),
    "llamafactory-mindspeed": ({"layer", "norm1", "norm2", "attention", "o", "mlp"}),
}


def vision_of_mindspeed(reached):
    tree, top = Tree(), "0.module"
    outer, vl = module_name(top, "Float16Module"), module_name(f"{top}.module", "VLModel")
    image = f"{top}.module.image_encoder"
    vision, encoder = module_name(image, "VisionModel"), module_name(f"{image}.encoder", "Qwen2VLViT")
    tree.add(f"{image}.encoder.patch_embed", "PatchEmbed", encoder, "patches", ["conv3d"])
    tree.add(f"{image}.encoder.rotary_pos_emb", "VisionRotaryEmbedding", encoder, "vision rotary")
    blocks = module_name(f"{image}.encoder.blocks", "TransformerBlock")
    marks = {
        part: f"v {name}" for part, name in {**TEXT, "qkv": "qkv", "proj": "proj", "fc1": "up", "fc2": "down"}.items()
    }
    for i in range(LAYERS):
        path = f"{image}.encoder.blocks.layers.{i}"
        megatron_layer(tree, path, blocks, "TransformerLayer", "Qwen2vlVitSelfAttention", None, marks, i)
    tree.add(f"{image}.encoder.blocks", "TransformerBlock", encoder)
    tree.add(f"{image}.encoder", "Qwen2VLViT", vision)
    projector = module_name(f"{image}.projector", "MultimodalProjector")
    tree.add(f"{image}.projector.layernorm", "RMSNorm", projector, "merger norm", ["layer_norm"])
    inside = module_name(f"{image}.projector.encoder", "MLP")
    tree.add(f"{image}.projector.encoder.linear_fc1", "ColumnParallelLinear", inside, "merger 1", ["linear"])
    tree.add(f"{image}.projector.encoder.linear_fc2", "RowParallelLinear", inside, "merger 2", ["linear"])
    tree.add(f"{image}.projector.encoder", "MLP", projector, "merger mlp")
    tree.add(f"{image}.projector", "MultimodalProjector", vision, "merger")
    tree.add(image, "VisionModel", vl, "vision")
    text = f"{top}.module.text_decoder"
    model, block = module_name(text, "MMGPTModel"), module_name(f"{text}.decoder", "TransformerBlock")
    tree.add(f"{text}.embedding.word_embeddings", "VocabParallelEmbedding", model, "embedding", ["embedding"])
    tree.add(f"{text}.rotary_pos_emb", "RotaryEmbedding", model, "rotary")
    parts = {**TEXT, "proj": "o", "fc1": "up", "fc2": "down"}
    marks = {part: name for part, name in parts.items() if name in reached}
    for i in range(LAYERS):
        path = f"{text}.decoder.layers.{i}"
        megatron_layer(tree, path, block, "TransformerLayer", "SelfAttention", None, marks, i)
    tree.add(f"{text}.decoder.final_layernorm", "RMSNorm", block, "last norm", ["layer_norm"])
    tree.add(f"{text}.decoder", "TransformerBlock", model)
    tree.add(f"{text}.output_layer", "ColumnParallelLinear", model, "head", ["linear"])
    tree.add(text, "MMGPTModel", vl, "model")
    tree.add(f"{top}.module", "VLModel", outer)
    tree.add(top, "Float16Module", None, "outer")
    return tree


def vision_of_llamafactory(reached):
    tree, top = Tree(), "module"
    outer, vision = (
        module_name(top, "Qwen2_5_VLForConditionalGeneration"),
        module_name(f"{top}.visual", "Qwen2_5_VisionTransformerPretrainedModel"),
    )
    tree.add(f"{top}.visual.patch_embed", "Qwen2_5_VisionPatchEmbed", vision, "patches", ["conv3d"])
    tree.add(f"{top}.visual.rotary_pos_emb", "Qwen2_5_VisionRotaryEmbedding", vision, "vision rotary")
    kinds = {"layer": "Qwen2_5_VLVisionBlock", "norm": "Qwen2RMSNorm", "attention": "Qwen2_5_VLVisionSdpaAttention"}
    kinds["mlp"] = "Qwen2_5_VLMLP"
    names = {"norm1": "norm1", "norm2": "norm2", "attention": "attn", "projections": ("qkv", "proj")}
    parts = {**TEXT, "qkv": "qkv", "proj": "proj", "up_proj": "up", "down_proj": "down"}
    for i in range(LAYERS):
        marks = {part: f"v {name}" for part, name in parts.items()}
        hugging_layer(tree, f"{top}.visual.blocks.{i}", vision, kinds, names, marks, i)
    merger = module_name(f"{top}.visual.merger", "Qwen2_5_VLPatchMerger")
    tree.add(f"{top}.visual.merger.ln_q", "Qwen2RMSNorm", merger, "merger norm", ["layer_norm"])
    inside = module_name(f"{top}.visual.merger.mlp", "Sequential")
    tree.add(f"{top}.visual.merger.mlp.0", "Linear", inside, "merger 1", ["linear"])
    tree.add(f"{top}.visual.merger.mlp.1", "GELU", inside, None, ["gelu"])
    tree.add(f"{top}.visual.merger.mlp.2", "Linear", inside, "merger 2", ["linear"])
    tree.add(f"{top}.visual.merger.mlp", "Sequential", merger, "merger mlp")
    tree.add(f"{top}.visual.merger", "Qwen2_5_VLPatchMerger", vision, "merger")
    tree.add(f"{top}.visual", "Qwen2_5_VisionTransformerPretrainedModel", outer, "vision")
    model = module_name(f"{top}.model", "Qwen2_5_VLModel")
    tree.add(f"{top}.model.embed_tokens", "Embedding", model, "embedding", ["embedding"])
    tree.add(f"{top}.model.rotary_emb", "Qwen2_5_VLRotaryEmbedding", model, "rotary")
    kinds = {"layer": "Qwen2_5_VLDecoderLayer", "norm": "Qwen2RMSNorm", "attention": "Qwen2_5_VLSdpaAttention"}
    kinds["mlp"] = "Qwen2MLP"
    parts = {**TEXT, "o_proj": "o", "up_proj": "up", "down_proj": "down"}
    marks = {part: name for part, name in parts.items() if name in reached}
    for i in range(LAYERS):
        hugging_layer(tree, f"{top}.model.layers.{i}", model, kinds, HF_TEXT, marks, i)
    tree.add(f"{top}.model.norm", "Qwen2RMSNorm", model, "last norm", ["layer_norm"])
    tree.add(f"{top}.model", "Qwen2_5_VLModel", outer, "model")
    tree.add(f"{top}.lm_head", "Linear", outer, "head", ["linear"])
    tree.add(top, "Qwen2_5_VLForConditionalGeneration", None, "outer")
    return tree


def sides_of(template, reached=None):
    """`reached`: of the decoder of the vision model, else what the mapping reaches."""
    model, direction = template.split(":")
    reached = reached or VL_DECODER[direction]
    if model == "qwen2.5":
        sides = {"mindspeed": text_of_mindspeed(), "llamafactory": text_of_llamafactory()}
    else:
        sides = {"mindspeed": vision_of_mindspeed(reached), "llamafactory": vision_of_llamafactory(reached)}
    return [sides[name] for name in direction.split("-")]


# Layers that one of the two computes as one.
FUSED = {
    "self_attention.linear_qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.linear_fc1": ("mlp.gate_proj", "mlp.up_proj"),
}


def expected_pairs(target, golden):
    """Modules of one mark."""
    by_mark = {mark: name for name, mark in golden.marks.items()}
    assert len(by_mark) == len(golden.marks) and set(by_mark) == set(target.marks.values())
    return {name: by_mark[mark] for name, mark in target.marks.items()}


def are_parts(a, b):
    """Whether a layer of one side is a part of one of the other, in layers of one number."""
    for whole, part in ((a, b), (b, a)):
        for fused, parts in FUSED.items():
            if f".{fused}." in whole and any(f".{name}." in part for name in parts):
                return (
                    re.search(r"\d+(?=\.(self|mlp|attn))", whole)[0] == re.search(r"\d+(?=\.(self|mlp|attn))", part)[0]
                )
    return False


TEMPLATES = [
    f"{model}:{direction}"
    for model in ("qwen2.5", "qwen2.5-vl")
    for direction in ("mindspeed-llamafactory", "llamafactory-mindspeed")
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_mapped_pair_and_no_wrong_one(template, tmp_path):
    target, golden = sides_of(template)
    runs = ["-tp", target.write(tmp_path / "a"), "-gp", golden.write(tmp_path / "b")]
    want = expected_pairs(target, golden)
    right = expected_pairs(*sides_of(template, EVERYTHING))
    file = tmp_path / "layers.yaml"
    file.write_text(run(["compare", "--print_template", template]).stdout)

    def check(found):
        assert all(found.get(name) == other or are_parts(found.get(name, ""), name) for name, other in want.items())
        assert {n: other for n, other in found.items() if right.get(n) != other and not are_parts(n, other)} == {}

    for options in (["--template", template], ["-lm", file]):
        done = run(["compare", *runs, *options, "--plan"])
        assert done.stderr == ""  # all classes are there
        (plan,) = json.loads(done.stdout)["matches"]
        check(dict(plan["pairs"]))
    graph(*runs, "-lm", file, "-o", tmp_path / "out")
    found = {n: link for n, link in links(tmp_path / "out").items() if n in target.parents}
    check({n: link for n, link in found.items() if link})
    assert set(found) == set(target.names)


@pytest.mark.parametrize("command", ["compare", "graph_visualize"])
@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (("\nMLP:\n", "\nMPL:\n"), 0, ["line 16: MPL", "correct them, or leave them out"]),
        (("\nMLP:\n", "\nSelfAttention:\n"), 3, ["line 16", '"SelfAttention" stands in line', "in one place"]),
        (("  linear_fc2:", "  linear_fc1:"), 3, ["line 17", '"linear_fc1" stands in line 16', "in one place"]),
    ],
    ids=["unknown class", "class twice", "child twice"],
)
def test_mistakes_in_a_mapping_are_named_by_line(command, change, code, words, tmp_path):
    target, golden = sides_of("qwen2.5:mindspeed-llamafactory")
    text = run(["compare", "--print_template", "qwen2.5:mindspeed-llamafactory"]).stdout
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#")) + "\n"
    assert change[0] in text
    file = tmp_path / "layers.yaml"
    file.write_text(text.replace(*change))
    args = ["-tp", target.write(tmp_path / "a"), "-gp", golden.write(tmp_path / "b"), "-lm", file, "-o", tmp_path / "o"]
    done = run([command, *args], check=False)
    assert done.returncode == code, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "layers.yaml" in line]
    assert [word for word in words if word not in line] == [], line
    assert code == 0 or not (tmp_path / "o").exists()

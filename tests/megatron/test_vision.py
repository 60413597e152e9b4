"""The templates for Qwen2.5-VL: a stand-in for MindSpeed-MM's model, of its class names, against that of transformers."""

from itertools import product

import pytest
from test_two_programs import SIDES, directed, job, mapping_options, nodes, plan, recorder, run, unwrapped, verdict

TEMPLATES = {"megatron": "qwen2.5-vl:mindspeed-llamafactory", "hugging": "qwen2.5-vl:llamafactory-mindspeed"}
VISION = ("image_encoder.encoder.blocks.layers.{}", "visual.blocks.{}")
TEXT = ("text_decoder.decoder.layers.{}", "model.layers.{}")
LAYER = {
    VISION: {
        "": "",
        ".input_layernorm": ".norm1",
        ".self_attention": ".attn",
        ".self_attention.linear_qkv": ".attn.qkv",
        ".self_attention.linear_proj": ".attn.proj",
        ".pre_mlp_layernorm": ".norm2",
        ".mlp.linear_fc2": ".mlp.down_proj",
    },
    TEXT: {
        "": "",
        ".input_layernorm": ".input_layernorm",
        ".self_attention": ".self_attn",
        ".self_attention.linear_proj": ".self_attn.o_proj",
        ".pre_mlp_layernorm": ".post_attention_layernorm",
        ".mlp.linear_fc2": ".mlp.down_proj",
    },
}
TABLE = {
    "image_encoder": "visual",
    "image_encoder.encoder.patch_embed": "visual.patch_embed",
    "image_encoder.encoder.rotary_pos_emb": "visual.rotary_pos_emb",
    "image_encoder.projector": "visual.merger",
    "image_encoder.projector.layernorm": "visual.merger.ln_q",
    "image_encoder.projector.encoder": "visual.merger.mlp",
    "image_encoder.projector.encoder.linear_fc1": "visual.merger.mlp.0",
    "image_encoder.projector.encoder.linear_fc2": "visual.merger.mlp.2",
    "text_decoder": "model",
    "text_decoder.embedding.word_embeddings": "model.embed_tokens",
    "text_decoder.rotary_pos_emb": "model.rotary_emb",
    "text_decoder.decoder.final_layernorm": "model.norm",
    "text_decoder.output_layer": "lm_head",
    **{
        ours.format(i) + part: theirs.format(i) + other
        for (ours, theirs), parts in LAYER.items()
        for part, other in parts.items()
        for i in range(2)
    },
}
FAULTS = {
    "vision norm": ("image_encoder.encoder.blocks.layers.1.input_layernorm", "visual.blocks.1.norm1"),
    "vision proj": ("image_encoder.encoder.blocks.layers.0.self_attention.linear_proj", "visual.blocks.0.attn.proj"),
    "projector": ("image_encoder.projector.layernorm", "visual.merger.ln_q"),
    "text norm": ("text_decoder.decoder.layers.1.pre_mlp_layernorm", "model.layers.1.post_attention_layernorm"),
    "text output": ("text_decoder.decoder.layers.0.mlp.linear_fc2", "model.layers.0.mlp.down_proj"),
}
HOW = ("none", "template", "suggested")


@pytest.fixture(scope="session")
def recorded(vision_python, tmp_path_factory):
    return recorder(vision_python, "vision.py", tmp_path_factory.mktemp("vision"))


def path_of(name):
    return unwrapped(".".join(name.split(".")[1:-3]))


CASES = [pytest.param(*case, id="-".join(case)) for case in product(("fp32", "bf16"), ("L0", "mix"), SIDES, HOW)]


@pytest.mark.parametrize(("dtype", "level", "side", "how"), CASES)
def test_equal_weights_pair_and_say_nothing(recorded, tmp_path, dtype, level, side, how):
    target, golden = directed(side, *recorded(job("megatron", dtype, level), job("hugging", dtype, level)))
    options = mapping_options(how, target, golden, side, tmp_path, TEMPLATES)
    pairs = {}
    for a, b in plan(target, golden, options)["pairs"]:
        if ".forward." in a:
            ours, theirs = (a, b) if side == "megatron" else (b, a)
            pairs.setdefault(path_of(ours), set()).add(path_of(theirs))
    # The result of transformers' text model is recorded as a call of its own, or within that of the whole.
    assert [pair for pair in TABLE.items() if pair[1] not in pairs.get(pair[0], ())] == []
    said = verdict(target, golden, tmp_path, options)
    assert said["outcome"] == "round_off" and not said["origins"], said["text"]["en"]
    assert said["ops"]["bug"] == said["ops"]["suspicious"] == said["ops"]["inherited"] == 0


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_planted_faults_are_named(recorded, tmp_path, dtype, side, how):
    clean = {s: job(s, dtype) for s in SIDES}
    recorded(*clean.values(), *(job(s, dtype, fault=fault) for s in SIDES for fault in FAULTS))
    wrong = []
    for faulted, fault in product(SIDES, FAULTS):
        target, golden = directed(side, *recorded(*{**clean, faulted: job(faulted, dtype, fault=fault)}.values()))
        said = verdict(target, golden, tmp_path, mapping_options(how, target, golden, side, tmp_path, TEMPLATES))
        named = unwrapped(said["origins"][0]["module"]) if said["origins"] else None
        if named != FAULTS[fault][SIDES.index(side)]:
            wrong.append((faulted, fault, named, said["text"]["en"][0]))
    assert not wrong


@pytest.mark.parametrize("how", ["none", "template"])
@pytest.mark.parametrize("level", ["mix", "L0"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_graph_says_the_same(recorded, tmp_path, dtype, side, level, how):
    clean = {s: job(s, dtype, level) for s in SIDES}
    faulty = {**clean, "megatron": job("megatron", dtype, level, fault="vision norm")}
    recorded(*clean.values(), faulty["megatron"])
    for jobs, place in ((clean, None), (faulty, FAULTS["vision norm"])):
        target, golden = directed(side, *recorded(*jobs.values()))
        out = tmp_path / ("clean" if place is None else "faulty")
        options = mapping_options(how, target, golden, side, tmp_path, TEMPLATES)
        text = run("graph_visualize", "-tp", target, "-gp", golden, "-o", out, *options)
        if place:
            assert f"{place[SIDES.index(side)]}.weight " in text.splitlines()[0]
            continue
        assert text.startswith("No difference beyond rounding")
        rows = nodes(next(out.glob("*.vis.db")))
        assert [name for name, index, _ in rows["NPU"] if index not in (None, 0)] == []
        for at, source in enumerate(("NPU", "Bench")):
            alone = {path_of(name) for name, _, link in rows[source] if ".forward." in name and not link}
            column = at if side == "megatron" else 1 - at
            assert [pair for pair in TABLE.items() if pair[column] in alone] == []


def test_the_suggestion_holds_the_table(recorded, tmp_path):
    target, golden = recorded(job("megatron", "bf16"), job("hugging", "bf16"))
    file = tmp_path / "suggested.yaml"
    run("compare", "-tp", target, "-gp", golden, "-o", tmp_path, "--suggest_mapping", file)
    text = run("compare", "--print_template", TEMPLATES["megatron"])
    template = {line.partition("#")[0].rstrip() for line in text.splitlines()} - {""}
    # The head of transformers is beside its text model, not in it: the suggestion names it in the class around both.
    lines = set(file.read_text().splitlines())
    assert template - {"  output_layer: lm_head"} <= lines
    assert "  module.text_decoder.output_layer: lm_head" in lines

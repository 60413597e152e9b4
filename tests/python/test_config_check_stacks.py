"""msprobe config_check -tp -gp over stacks that train on top of others: the same training passes, one change is named with its values."""

import json

import numpy as np
import pytest
import torch
from graph_cases import run
from safetensors.torch import save_file

MEGATRON = """#!/bin/bash
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 16 --hidden-size 1024 --ffn-hidden-size 2816 --num-attention-heads 16 \\
  --seq-length 1024 --max-position-embeddings 1024 --normalization RMSNorm --norm-epsilon 1e-6 --position-embedding-type rope \\
  --rotary-base 20000 --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --init-method-std 0.02 \\
  --attention-dropout 0 --hidden-dropout 0 --micro-batch-size 4 --global-batch-size 32 --train-iters 600 --lr 4e-4 --min-lr 4e-5 \\
  --lr-decay-style cosine --lr-warmup-iters 30 --adam-beta1 0.9 --adam-beta2 0.98 --weight-decay 0.05 --clip-grad 1.0 --bf16 \\
  --seed 11 --tensor-model-parallel-size 1
"""
MODEL = {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "vocab_size": 32064,
    "rms_norm_eps": 1e-6,
    "rope_theta": 20000.0,
    "hidden_act": "silu",
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMAFACTORY = """model_name_or_path: /models/m
stage: sft
finetuning_type: full
dataset: talks
template: mistral
cutoff_len: 1536
packing: false
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
learning_rate: 3.0e-5
max_steps: 600
lr_scheduler_type: cosine
warmup_steps: 30
adam_beta2: 0.98
weight_decay: 0.05
bf16: true
seed: 11
"""
SWIFT = """#!/bin/bash
NPROC_PER_NODE=4 swift sft --model /models/m --train_type full --dataset /d/talks.jsonl --torch_dtype bfloat16 --bf16 true \\
  --template mistral --max_length 1536 --packing false --per_device_train_batch_size 4 --gradient_accumulation_steps 2 \\
  --learning_rate 3e-5 --max_steps 600 --lr_scheduler_type cosine --warmup_ratio 0.05 --adam_beta2 0.98 --weight_decay 0.05 \\
  --seed 11 --output_dir /o/swift
"""
AXOLOTL = """base_model: /models/m
model_type: MistralForCausalLM
chat_template: mistral
datasets:
  - path: /d/talks.jsonl
    type: chat_template
sequence_len: 1536
sample_packing: false
micro_batch_size: 4
gradient_accumulation_steps: 2
optimizer: adamw_torch
learning_rate: 3.0e-5
lr_scheduler: cosine
max_steps: 600
warmup_steps: 30
adam_beta2: 0.98
weight_decay: 0.05
bf16: true
seed: 11
"""
TRL = """model_name_or_path: /models/m
dataset_name: /d/talks
max_length: 1536
packing: false
assistant_only_loss: true
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
learning_rate: 3.0e-5
max_steps: 600
lr_scheduler_type: cosine
warmup_ratio: 0.05
adam_beta2: 0.98
weight_decay: 0.05
bf16: true
seed: 11
"""
TORCHTUNE = """tokenizer:
  _component_: torchtune.models.mistral.mistral_tokenizer
  max_seq_len: 1536
model:
  _component_: torchtune.models.mistral.mistral_7b
dataset:
  _component_: torchtune.datasets.chat_dataset
  data_files: /d/talks.json
  packed: False
batch_size: 4
gradient_accumulation_steps: 2
epochs: 2
max_steps_per_epoch: 300
optimizer:
  _component_: torch.optim.AdamW
  lr: 3e-5
  betas: [0.9, 0.98]
  weight_decay: 0.05
lr_scheduler:
  _component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup
  num_warmup_steps: 30
clip_grad_norm: 1.0
seed: 11
dtype: bf16
"""
NEOX = """{
  "pipe_parallel_size": 1, "model-parallel-size": 1, "num_layers": 16, "hidden_size": 1024, "num_attention_heads": 16,
  "seq_length": 1024, "max_position_embeddings": 1024, "norm": "rmsnorm", "rms_norm_epsilon": 1.0e-6, "pos_emb": "rotary",
  "rotary_emb_base": 20000, "no_weight_tying": true, "activation": "swiglu", "init_method_std": 0.02,
  "optimizer": {"type": "Adam", "params": {"lr": 0.0004, "betas": [0.9, 0.98], "eps": 1.0e-8}}, "min_lr": 0.00004,
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0, "weight_decay": 0.05,
  "train_iters": 600, "lr_decay_style": "cosine", "warmup": 0.05, "precision": "bfloat16", "seed": 11, "global_num_gpus": 4,
  "use_bias_in_mlp": false, "use_bias_in_attn_linear": false, "intermediate_size": 8448
}
"""
NEMO = """trainer:
  devices: 4
  num_nodes: 1
  precision: bf16-mixed
  max_steps: 600
  gradient_clip_val: 1.0
exp_manager:
  name: nemo
model:
  micro_batch_size: 4
  global_batch_size: 32
  encoder_seq_length: 1024
  num_layers: 16
  hidden_size: 1024
  ffn_hidden_size: 2816
  num_attention_heads: 16
  normalization: rmsnorm
  layernorm_epsilon: 1e-6
  activation: fast-swiglu
  bias: False
  position_embedding_type: rope
  rotary_base: 20000
  share_embeddings_and_output_weights: False
  init_method_std: 0.02
  hidden_dropout: 0.0
  attention_dropout: 0.0
  seed: 11
  optim:
    name: distributed_fused_adam
    lr: 4e-4
    weight_decay: 0.05
    betas: [0.9, 0.98]
    sched:
      name: CosineAnnealing
      warmup_steps: 30
      min_lr: 4e-5
"""
TITAN = """[job]
dump_folder = "./o"  # of the run

[model]
name = "llama3"
flavor = "1B"

[optimizer]
lr = 4e-4
beta2 = 0.98
weight_decay = 0.05

[lr_scheduler]
warmup_steps = 30
decay_type = "cosine"
min_lr_factor = 0.1

[training]
local_batch_size = 4
global_batch_size = 32
seq_len = 1_024
steps = 600
dataset = 'c4'
seed = 11

[parallelism]
tensor_parallel_degree = 1
"""
OPENRLHF = """#!/bin/bash
read -r -d '' command <<EOF
openrlhf.cli.train_sft \\
  --max_len 1536 --dataset /d/talks.jsonl --train_batch_size 32 --micro_train_batch_size 4 --pretrain /models/m \\
  --learning_rate 3e-5 --adam_betas 0.9 0.98 --l2 0.05 --lr_scheduler cosine --lr_warmup_ratio 0.05 --max_norm 1.0 --bf16 --seed 11
EOF
deepspeed --num_gpus 4 --module $command
"""
VERL = """python3 -m verl.trainer.main_ppo data.train_batch_size=256 data.max_prompt_length=256 data.max_response_length=512 \\
  actor_rollout_ref.actor.optim.lr=2e-6 actor_rollout_ref.actor.optim.weight_decay=0.02 actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.rollout.n=4 actor_rollout_ref.rollout.temperature=0.8 trainer.n_gpus_per_node=4 trainer.nnodes=1
"""
OPENRLHF_RL = """#!/bin/bash
ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 \\
  --actor_num_gpus_per_node 4 --pretrain /models/m --micro_train_batch_size 4 --train_batch_size 256 --rollout_batch_size 256 \\
  --n_samples_per_prompt 4 --temperature 0.8 --prompt_max_len 256 --generate_max_len 512 --actor_learning_rate 2e-6 --l2 0.02 \\
  --adam_betas 0.9 0.999 --max_norm 1.0 --lr_scheduler constant --bf16
"""


def side(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        out.append(path.parent if name == "model/config.json" else path)
    return out


def compare(folder, target, golden, codes=(0, 1)):
    done = run(
        ["config_check", "-tp", *side(folder / "a", target), "-gp", *side(folder / "b", golden), "--json"], check=False
    )
    assert done.returncode in codes, done.stderr
    report = json.loads(done.stdout)
    return report, {finding["rule"]: finding for finding in report["findings"]}


def failing(found):
    return {rule: (f["target"], f["golden"]) for rule, f in found.items() if f["verdict"] == "fail"}


def launched(name, text, command, model=True):
    return {"run.sh": f"#!/bin/bash\n{command}\n", name: text} | ({"model/config.json": MODEL} if model else {})


FINE_TUNING = {
    "LLaMA-Factory": launched("sft.yaml", LLAMAFACTORY, "NPROC_PER_NODE=4 llamafactory-cli train sft.yaml"),
    "ms-swift": {"run.sh": SWIFT, "model/config.json": MODEL},
    "Axolotl": launched("ax.yml", AXOLOTL, "accelerate launch --num_processes 4 -m axolotl.cli.train ax.yml"),
    "TRL": launched("trl.yaml", TRL, "trl sft --config trl.yaml --num_processes 4"),
    "torchtune": launched(
        "full.yaml", TORCHTUNE, "tune run --nproc_per_node 4 full_finetune_distributed --config full.yaml"
    ),
    "OpenRLHF": {"run.sh": OPENRLHF, "model/config.json": MODEL},
}
PRETRAINING = {
    "Megatron": {"run.sh": MEGATRON},
    "GPT-NeoX": launched("neox.yml", NEOX, "python ./deepy.py train.py neox.yml", model=False),
    "NeMo": {"megatron_gpt_config.yaml": NEMO},
    "torchtitan": launched(
        "llama.toml", TITAN, "torchrun --nproc_per_node 4 -m torchtitan.train --job.config_file llama.toml", model=False
    ),
}


@pytest.mark.parametrize("stack", FINE_TUNING)
def test_the_same_fine_tuning_in_two_stacks(stack, tmp_path):
    for other in FINE_TUNING:
        report, found = compare(tmp_path / other, FINE_TUNING[stack], FINE_TUNING[other])
        assert failing(found) == {}, other
        assert stack in report["target_frameworks"] and other in report["golden_frameworks"]
        for rule in (
            "optimizer.lr",
            "optimizer.beta2",
            "optimizer.weight_decay",
            "optimizer.global_batch_size",
            "structure.seq_length",
        ):
            assert found[rule]["verdict"] == "pass", (other, rule, found[rule])
        warmup = found[
            "optimizer.warmup_ratio"
        ]  # steps, ratios and shares are one unit; OpenRLHF does not say how many steps
        assert warmup["target"] in (("", "0.05 of all steps") if stack == "OpenRLHF" else ("30", "30.0")), warmup


@pytest.mark.parametrize("stack", PRETRAINING)
def test_the_same_pretraining_in_two_stacks(stack, tmp_path):
    for other in PRETRAINING:
        _, found = compare(tmp_path / other, PRETRAINING[stack], PRETRAINING[other])
        assert failing(found) == {}, other
        for rule in (
            "optimizer.lr",
            "optimizer.min_lr",
            "optimizer.warmup_ratio",
            "optimizer.lr_schedule",
            "structure.seq_length",
        ):
            assert found[rule]["verdict"] == "pass", (other, rule, found[rule])


# stack, text, what stands there instead, rule, values of both sides (of the changed one first)
CHANGES = [
    ("LLaMA-Factory", "cutoff_len: 1536", "warmup_steps: 30", "structure.seq_length", ("2048", "1536")),
    ("LLaMA-Factory", "packing: false", "packing: true", "data.packing", ("True", "False")),
    ("LLaMA-Factory", "template: mistral", "template: qwen", "data.chat_template", ("qwen", "mistral")),
    ("LLaMA-Factory", "seed: 11", "seed: 11\ntrain_on_prompt: true", "data.masked_prompts", ("False", "True")),
    ("LLaMA-Factory", "type: full", "type: lora\nlora_rank: 16", "structure.adapter", ("kind lora", "kind full")),
    ("ms-swift", "--warmup_ratio 0.05", "--warmup_ratio 0.1", "optimizer.warmup_ratio", ("60.0", "30")),
    ("ms-swift", "--weight_decay 0.05 ", "", "optimizer.weight_decay", ("0.1", "0.05")),
    ("ms-swift", "--max_length 1536", "--max_length 3072", "structure.seq_length", ("3072", "1536")),
    ("Axolotl", "warmup_steps: 30", "warmup_steps: 45", "optimizer.warmup_ratio", ("45", "30")),
    ("Axolotl", "sequence_len: 1536", "sequence_len: 512", "structure.seq_length", ("512", "1536")),
    ("Axolotl", "sample_packing: false", "sample_packing: true", "data.packing", ("True", "False")),
    ("TRL", "adam_beta2: 0.98", "adam_beta1: 0.9", "optimizer.beta2", ("0.999", "0.98")),
    ("TRL", "max_length: 1536", "seed: 11", "structure.seq_length", ("1024", "1536")),
    ("torchtune", "num_warmup_steps: 30", "num_warmup_steps: 90", "optimizer.warmup_ratio", ("90", "30")),
    ("torchtune", "lr: 3e-5", "lr: 3e-6", "optimizer.lr", ("3e-06", "3e-05")),
    ("torchtune", "  weight_decay: 0.05\n", "", "optimizer.weight_decay", ("0.01", "0.05")),
    (
        "torchtune",
        "max_steps_per_epoch: 300",
        "max_steps_per_epoch: 400",
        "optimizer.lr_schedule_members",
        ("800", "600"),
    ),
    ("OpenRLHF", "--learning_rate 3e-5", "--learning_rate 3e-6", "optimizer.lr", ("3e-06", "3e-05")),
    ("OpenRLHF", "--l2 0.05", "--l2 0.5", "optimizer.weight_decay", ("0.5", "0.05")),
    ("OpenRLHF", "--adam_betas 0.9 0.98 ", "", "optimizer.beta2", ("0.95", "0.98")),
]


@pytest.mark.parametrize(("stack", "old", "new", "rule", "values"), CHANGES)
def test_one_change_of_a_fine_tuning_is_named_with_its_values(stack, old, new, rule, values, tmp_path):
    files = {
        name: text.replace(old, new, 1) if isinstance(text, str) else text for name, text in FINE_TUNING[stack].items()
    }
    assert files != FINE_TUNING[stack]
    for other in ("LLaMA-Factory", "Axolotl"):
        _, found = compare(tmp_path / other, files, FINE_TUNING[other])
        fails = failing(found)
        assert list(fails) == [rule], (other, fails)
        assert all(value in shown for value, shown in zip(values, fails[rule])), fails


PRETRAINING_CHANGES = [
    ("GPT-NeoX", '"warmup": 0.05', '"warmup": 0.1', "optimizer.warmup_ratio", ("60.0", "30")),
    ("GPT-NeoX", '"betas": [0.9, 0.98]', '"betas": [0.9, 0.95]', "optimizer.beta2", ("0.95", "0.98")),
    ("GPT-NeoX", '"weight_decay": 0.05', '"weight_decay": 0.5', "optimizer.weight_decay", ("0.5", "0.05")),
    ("NeMo", "min_lr: 4e-5", "min_lr: 4e-6", "optimizer.min_lr", ("4e-06", "4e-05")),
    ("NeMo", "precision: bf16-mixed", "precision: 16-mixed", "precision.compute_dtype", ("fp16", "bf16")),
    ("torchtitan", "min_lr_factor = 0.1", "min_lr_factor = 0.2", "optimizer.min_lr", ("8e-05", "4e-05")),
    ("torchtitan", "llama.toml\n", "llama.toml --training.seq_len 512\n", "structure.seq_length", ("512", "1024")),
]


@pytest.mark.parametrize(("stack", "old", "new", "rule", "values"), PRETRAINING_CHANGES)
def test_one_change_of_a_pretraining_is_named_with_its_values(stack, old, new, rule, values, tmp_path):
    files = {name: text.replace(old, new, 1) for name, text in PRETRAINING[stack].items()}
    assert files != PRETRAINING[stack]
    _, found = compare(tmp_path, files, PRETRAINING["Megatron"])
    fails = failing(found)
    fails.pop("optimizer.loss_scale", None)  # fp16 scales its loss
    assert list(fails) == [rule] and all(value in shown for value, shown in zip(values, fails[rule])), fails


def test_the_rate_of_an_actor_in_two_stacks(tmp_path):
    _, found = compare(tmp_path / "same", {"run.sh": OPENRLHF_RL}, {"run.sh": VERL})
    assert failing(found) == {} and found["optimizer.policy"]["verdict"] == "pass"
    changed = OPENRLHF_RL.replace("--actor_learning_rate 2e-6", "--actor_learning_rate 2e-7").replace("0.8", "1.0")
    _, found = compare(tmp_path / "other", {"run.sh": changed}, {"run.sh": VERL})
    assert failing(found) == {
        "optimizer.lr": ("2e-07", "2e-06"),
        "optimizer.policy": ("temperature 1.0", "temperature 0.8"),
    }


def test_a_warmup_is_not_compared_where_the_number_of_steps_is_not_known(tmp_path):
    epochs = LLAMAFACTORY.replace("max_steps: 600", "num_train_epochs: 3").replace(
        "warmup_steps: 30", "warmup_ratio: 0.05"
    )
    _, found = compare(tmp_path, {"a.yaml": epochs}, {"b.yaml": AXOLOTL.replace("max_steps: 600", "num_epochs: 3")})
    assert found["optimizer.warmup_ratio"]["verdict"] == "ask" and failing(found) == {}
    # Axolotl takes 3 % of the steps where nothing is set, which is no 0.
    _, found = compare(
        tmp_path / "none", {"a.yaml": AXOLOTL.replace("warmup_steps: 30\n", "")}, {"b.yaml": LLAMAFACTORY}
    )
    assert found["optimizer.warmup_ratio"]["verdict"] == "ask" and found["optimizer.warmup_ratio"]["target"] == ""


@pytest.mark.parametrize(
    ("kind", "norm"),
    [("t5", "RMSNorm"), ("gpt_neox", "LayerNorm"), ("olmo2", "RMSNorm"), ("bart", "LayerNorm"), ("home_made", "")],
)
def test_the_norm_of_a_model_is_that_of_its_family(kind, norm, tmp_path):
    model = {"model_type": kind, "num_layers": 4, "d_model": 512, "vocab_size": 32128, "layer_norm_epsilon": 1e-6}
    _, found = compare(tmp_path, {"config.json": model}, {"config.json": model})
    assert found["structure.normalization"]["target"] == norm
    assert found["structure.normalization"]["verdict"] == ("pass" if norm else "ask")


ROPE = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 2048, "mscale": 1.0, "beta_fast": 32}
MEMBERS = [
    ("rope_scaling", ROPE | {"mscale": 0.8}, "structure.rope_scaling_members", "mscale 0.8", "mscale 1.0"),
    ("rope_scaling", ROPE | {"beta_fast": 16}, "structure.rope_scaling_members", "beta_fast 16", "beta_fast 32"),
    (
        "rope_scaling",
        ROPE | {"original_max_position_embeddings": 4096},
        "structure.rope_scaling_members",
        "4096",
        "2048",
    ),
    ("rope_scaling", ROPE | {"rope_type": "linear"}, "structure.rope_scaling_members", "type linear", "type yarn"),
    ("kv_lora_rank", 256, "structure.attention_sizes", "kv_lora_rank 256", "kv_lora_rank 512"),
    ("qk_rope_head_dim", 32, "structure.attention_sizes", "qk_rope_head_dim 32", "qk_rope_head_dim 64"),
]


@pytest.mark.parametrize(("key", "value", "rule", "target", "golden"), MEMBERS)
def test_each_member_of_a_family_of_settings_is_compared(key, value, rule, target, golden, tmp_path):
    model = MODEL | {"rope_scaling": ROPE, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    _, found = compare(tmp_path, {"config.json": model | {key: value}}, {"config.json": model})
    (fails,) = failing(found).items()
    assert fails[0] == rule and target in fails[1][0] and golden in fails[1][1]


def test_members_of_schedule_data_and_optimizer(tmp_path):
    def found(name, old, new, base=MEGATRON):
        return compare(tmp_path / name, {"run.sh": base.replace(old, new, 1)}, {"run.sh": base})[1]

    decay = found("decay", "--lr-warmup-iters", "--lr-decay-iters 450 --lr-warmup-iters")[
        "optimizer.lr_schedule_members"
    ]
    assert (decay["verdict"], decay["target"], decay["golden"]) == (
        "fail",
        "steps of the decay 450.0",
        "steps of the decay 600.0",
    )
    blend = MEGATRON.replace("--seed 11", "--seed 11 --data-path 4 /d/one_text 1 /d/two_text")
    data = found("blend", "4 /d/one_text 1", "1 /d/one_text 4", blend)["data.data_path"]
    assert (data["verdict"], data["target"], data["golden"]) == (
        "warn",
        "weights of the blend 0.2, 0.8",
        "weights of the blend 0.8, 0.2",
    )
    data = found("order", "4 /d/one_text 1 /d/two_text", "1 /d/two_text 4 /d/one_text", blend)["data.data_path"]
    assert "two_text, one_text" in data["target"] and data["verdict"] == "warn"
    shuffled = compare(
        tmp_path / "shuffle", {"a.yaml": LLAMAFACTORY + "disable_shuffling: true\n"}, {"b.yaml": LLAMAFACTORY}
    )[1]
    assert (shuffled["data.shuffle"]["verdict"], shuffled["data.shuffle"]["target"]) == ("warn", "False")
    bits = compare(
        tmp_path / "bits", {"a.yaml": AXOLOTL.replace("adamw_torch", "paged_adamw_8bit")}, {"b.yaml": AXOLOTL}
    )[1]
    assert bits["optimizer.type"]["verdict"] == "pass" and bits["optimizer.states"]["verdict"] == "warn"
    assert (
        "paged_adamw_8bit" in bits["optimizer.states"]["target"] and "adamw_torch" in bits["optimizer.states"]["golden"]
    )
    fused = compare(
        tmp_path / "fused", {"a.yaml": AXOLOTL.replace("adamw_torch", "adamw_torch_fused")}, {"b.yaml": AXOLOTL}
    )[1]
    assert fused["optimizer.states"]["verdict"] == "pass"


def test_rules_about_the_environment_show_values_and_files(tmp_path):
    golden = MEGATRON.replace("torchrun", "export ASCEND_LAUNCH_BLOCKING=1\ntorchrun")
    target = golden.replace("torchrun", "export HCCL_DETERMINISTIC=strict\ntorchrun")
    _, found = compare(tmp_path, {"run.sh": target}, {"run.sh": golden})
    rule = found["prepare.communication"]
    assert (rule["verdict"], rule["target"], rule["golden"]) == ("warn", "strict", "not set")
    assert rule["target_from"].endswith("a/run.sh:3") and rule["golden_from"].endswith("b/run.sh")


def test_settings_that_no_rule_knows_are_listed(tmp_path):
    target = MEGATRON.replace("--seed 11", "--seed 11 --spooky-mode 3 --save /o/a --log-interval 7 --no-fancy-fusion")
    golden = MEGATRON.replace("--seed 11", "--seed 11 --spooky-mode 4 --save /o/b --log-interval 9")
    report, found = compare(tmp_path, {"run.sh": target}, {"run.sh": golden})
    listed = {
        rule: (f["target"], f["golden"], f["verdict"]) for rule, f in found.items() if rule.startswith("setting.")
    }
    assert listed == {"setting.spooky_mode": ("3", "4", "warn"), "setting.no_fancy_fusion": ("True", "not set", "warn")}
    assert report["verdicts"]["warn"] == sum(f["verdict"] == "warn" for f in report["findings"])


def test_an_option_that_is_an_object_has_its_members(tmp_path):
    def script(depth, drop):
        own = f"""--seed 11 --spooky-args '{{"depth": {depth}, "kind": "a"}}' --drop-path {drop}"""
        return {"run.sh": MEGATRON.replace("--seed 11", own)}

    _, found = compare(tmp_path, script(3, 0.1), script(4, 0.3))
    listed = {rule: (f["target"], f["golden"]) for rule, f in found.items() if rule.startswith("setting.")}
    # The probability of stochastic depth is no path.
    assert listed == {"setting.spooky_args.depth": ("3", "4"), "setting.drop_path": ("0.1", "0.3")}


def test_files_of_no_known_stack_are_compared_by_their_names(tmp_path):
    report, found = compare(
        tmp_path, {"a.yaml": "gizmo: 3\nrate: 1e-3\n"}, {"b.yaml": "gizmo: 4\nrate: 0.001\n"}, codes=(5,)
    )
    assert found["setting.gizmo"]["target"] == "3" and "setting.rate" not in found
    assert len(report["warnings"]) == 2 and all("no stack that is known" in warning for warning in report["warnings"])


def test_names_of_an_own_script_and_of_an_own_yaml_are_one(tmp_path):
    """Options are flat and a yaml has sections; of two settings with one last name nothing is said."""
    script = "python train_ssm.py --d-model 512 --state-size 16 --lr 6e-4 --decay 0.1\n"
    own = "model: {d_model: 512, state_size: 32}\noptim: {lr: 6.0e-4, decay: 0.1}\nema: {decay: 0.9}\n"
    _, found = compare(tmp_path, {"train.sh": script}, {"ssm.yaml": own})
    assert (found["setting.state_size"]["target"], found["setting.state_size"]["golden"]) == ("16", "32")
    assert not {f"setting.{name}" for name in ("d_model", "lr", "model.d_model", "optim.lr")} & set(found)


def test_what_a_command_sets_counts_more_than_the_file_that_it_names(tmp_path):
    command = "llamafactory-cli train sft.yaml learning_rate=9e-5"
    files = launched("sft.yaml", LLAMAFACTORY, command, model=False)
    _, found = compare(tmp_path, files, {"sft.yaml": LLAMAFACTORY})
    assert failing(found) == {"optimizer.lr": ("9e-05", "3e-05")}
    assert found["optimizer.lr"]["target_from"].endswith("run.sh:2")


MINDFORMERS_2 = """run_mode: train
use_legacy: False
runner_config:
  batch_size: 8
optimizer:
  type: AdamW
  betas: [0.9, 0.98]
  eps: 1.e-8
  weight_decay: 0.05
lr_schedule:
  type: CosineWithWarmUpLR
  learning_rate: 4.e-4
  lr_end: 4.e-5
  warmup_ratio: 0.05
  total_steps: 600
parallel_config:
  data_parallel: 4
runner_wrapper:
  use_clip_grad: True
model:
  model_config:
    model_type: "mistral"
    num_hidden_layers: 16
    hidden_size: 1024
    intermediate_size: 2816
    num_attention_heads: 16
    seq_length: 1024
    rms_norm_eps: 1.e-6
    rope_theta: 20000.0
    hidden_act: "swiglu"
    compute_dtype: "bfloat16"
    params_dtype: "float32"
"""
MEGATRON_YAML = """language_model:
  num_layers: 16
  hidden_size: 1024
  ffn_hidden_size: 2816
  num_attention_heads: 16
  num_query_groups: 16
  normalization: RMSNorm
  layernorm_epsilon: 1e-6
  activation_func: swiglu
  add_bias_linear: False
  hidden_dropout: 0.0
  attention_dropout: 0.0
model_parallel:
  tensor_model_parallel_size: 1
  bf16: True
seq_length: 1024
position_embedding_type: rope
rotary_base: 20000
untie_embeddings_and_output_weights: True
micro_batch_size: 4
global_batch_size: 32
train_iters: 600
lr: 4e-4
min_lr: 4e-5
lr_decay_style: cosine
lr_warmup_iters: 30
adam_beta2: 0.98
weight_decay: 0.05
seed: 11
"""
MEGATRON_SWIFT = """#!/bin/bash
NPROC_PER_NODE=4 megatron sft --model /models/m --micro_batch_size 4 --global_batch_size 32 --train_iters 600 --lr 4e-4 --min_lr 4e-5 \\
  --lr_warmup_fraction 0.05 --adam_beta2 0.98 --weight_decay 0.05 --max_length 1024 --seed 11 --tensor_model_parallel_size 1
"""
NEMO_2 = """#!/bin/bash
nemo llm pretrain --factory llama3_8b trainer.max_steps=600 trainer.devices=4 trainer.num_nodes=1 optim.config.lr=4e-4 \\
  optim.config.adam_beta2=0.98 optim.config.weight_decay=0.05 optim.lr_scheduler.warmup_steps=30 optim.lr_scheduler.min_lr=4e-5 \\
  data.seq_length=1024 data.micro_batch_size=4 data.global_batch_size=32
"""
LIGHTNING = """seed_everything: 11
trainer:
  devices: 4
  num_nodes: 1
  max_steps: 600
  precision: bf16-mixed
  gradient_clip_val: 1.0
  accumulate_grad_batches: 2
model:
  class_path: mine.Model
data:
  init_args:
    batch_size: 4
    max_length: 1024
optimizer:
  class_path: torch.optim.AdamW
  init_args:
    lr: 4e-4
    betas: [0.9, 0.98]
    weight_decay: 0.05
lr_scheduler:
  class_path: torch.optim.lr_scheduler.CosineAnnealingLR
  init_args:
    T_max: 600
    eta_min: 4e-5
"""
OTHERS = {
    "MindFormers": ({"qwen.yaml": MINDFORMERS_2}, "4.e-4", "4.e-5"),
    "Megatron": (
        {
            "run.sh": "torchrun --nproc_per_node 4 pretrain_gpt.py --yaml-cfg megatron.yaml\n",
            "megatron.yaml": MEGATRON_YAML,
        },
        "lr: 4e-4",
        "lr: 4e-5",
    ),
    "Megatron-SWIFT": ({"run.sh": MEGATRON_SWIFT}, "--lr 4e-4", "--lr 4e-5"),
    "NeMo 2": ({"run.sh": NEMO_2}, "config.lr=4e-4", "config.lr=4e-5"),
    "Lightning": ({"fit.yaml": LIGHTNING}, "lr: 4e-4", "lr: 4e-5"),
}


@pytest.mark.parametrize("stack", OTHERS)
def test_further_stacks_against_megatron(stack, tmp_path):
    files, old, new = OTHERS[stack]
    report, found = compare(tmp_path / "same", files, {"run.sh": MEGATRON})
    assert failing(found) == {} and report["target_frameworks"] == [stack]
    for rule in (
        "optimizer.lr",
        "optimizer.beta2",
        "optimizer.weight_decay",
        "optimizer.min_lr",
        "optimizer.global_batch_size",
    ):
        assert found[rule]["verdict"] == "pass", (rule, found[rule])
    assert found["structure.seq_length"]["verdict"] == "pass"
    changed = {name: text.replace(old, new, 1) for name, text in files.items()}
    assert changed != files
    _, found = compare(tmp_path / "other", changed, {"run.sh": MEGATRON})
    assert list(failing(found)) == ["optimizer.lr"]


def test_the_text_decoder_of_mindspeed_mm(tmp_path):
    decoder = {
        "num_layers": 16,
        "hidden_size": 1024,
        "ffn_hidden_size": 2816,
        "num_attention_heads": 16,
        "rms_norm_eps": 1e-6,
    }
    model = {"model_id": "vl", "image_encoder": {"vision_encoder": {"num_layers": 12}}, "text_decoder": decoder}
    script = "torchrun --nproc_per_node 4 pretrain_vlm.py --mm-model model.json --lr 1e-5 --train-iters 10 --micro-batch-size 1\n"
    other = model | {"text_decoder": decoder | {"num_layers": 14}}
    _, found = compare(tmp_path, {"run.sh": script, "model.json": other}, {"run.sh": script, "model.json": model})
    assert failing(found) == {"structure.num_layers": ("14", "16")}
    other = model | {"image_encoder": {"vision_encoder": {"num_layers": 10}}}
    _, found = compare(tmp_path / "e", {"run.sh": script, "model.json": other}, {"run.sh": script, "model.json": model})
    assert failing(found) == {"structure.attention_sizes": ("encoder_layers 10", "encoder_layers 12")}


def test_groups_of_experts_and_smoothed_labels(tmp_path):
    model = MODEL | {"n_routed_experts": 16, "num_experts_per_tok": 2, "n_group": 8, "topk_group": 4}
    _, found = compare(tmp_path, {"config.json": model | {"n_group": 4}}, {"config.json": model})
    assert failing(found)["moe.router_members"] == ("n_group 4", "n_group 8")
    smoothed = LLAMAFACTORY + "label_smoothing_factor: 0.1\n"
    _, found = compare(tmp_path / "s", {"a.yaml": smoothed}, {"b.yaml": LLAMAFACTORY})
    assert failing(found) == {"data.loss_members": ("label_smoothing_factor 0.1", "label_smoothing_factor 0.0")}


def test_the_directory_of_a_run_and_the_output_of_pip(tmp_path):
    frozen = "transformers==4.45.2\nnumpy==1.26.4\n-e git+https://host/x@1#egg=x\nmine @ file:///x\n"
    listed = "Package      Version\n------------ -------\ntransformers 4.57.1\nnumpy        1.26.4\n"
    files = {
        "train.yaml": LLAMAFACTORY,
        "run.sh": "llamafactory-cli train train.yaml seed=12\n",
        "tokenizer_config.json": "{}",
    }
    side(tmp_path / "one", files | {"environment.txt": frozen, "train.log": "loss 1.0\n"})
    side(tmp_path / "two", files | {"pip.txt": listed, "notes.txt": "a run of mine\nthat went well\n"})
    done = run(["config_check", "-tp", tmp_path / "one", "-gp", tmp_path / "two", "--json"])
    found = {finding["rule"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["prepare.seed"]["target"] == "12" and found["optimizer.lr"]["verdict"] == "pass"
    versions = found["other.known_versions"]
    assert versions["verdict"] == "warn" and "4.45.2" in versions["target"] and "4.57.1" in versions["golden"]


def test_a_configuration_that_wandb_kept(tmp_path):
    values = [
        line.split(": ")
        for line in AXOLOTL.replace("datasets:\n  - path: /d/talks.jsonl\n    type: chat_template\n", "").splitlines()
    ]
    kept = "wandb_version: 1\n_wandb:\n  desc: null\n  value:\n    cli_version: 0.17\n"
    kept += "".join(f"{key}:\n  desc: null\n  value: {value}\n" for key, value in values)
    side(tmp_path / "run" / "files", {"config.yaml": kept})
    (plain,) = side(tmp_path, {"a.yml": AXOLOTL})
    done = run(["config_check", "-tp", tmp_path / "run", "-gp", plain, "--json"])
    report = json.loads(done.stdout)
    assert report["target_frameworks"] == ["Axolotl"] and report["verdicts"]["fail"] == 0
    assert next(f for f in report["findings"] if f["rule"] == "optimizer.lr")["target"] in ("3.0e-05", "3e-05")


@pytest.mark.parametrize(
    "name", ["batch_0.pt", "inputs.npy", "rank0/text.npy", "rank0/decoder_input_ids.npy", "sample.safetensors"]
)
def test_recorded_batches_have_the_names_of_their_loaders(name, tmp_path):
    for most, verdict in ((MODEL["vocab_size"] - 1, "pass"), (MODEL["vocab_size"], "fail")):
        path = tmp_path / str(most) / "batches" / "step_0" / name
        path.parent.mkdir(parents=True)
        ids = np.array([[0, 5, most]])
        if name.endswith(".npy"):
            np.save(path, ids)
        elif name.endswith(".pt"):
            torch.save({"input_ids": torch.from_numpy(ids), "labels": torch.full((1, 3), 10**6)}, path)
        else:
            save_file({"input_ids": torch.from_numpy(ids), "position_ids": torch.full((1, 3), 10**6)}, path)
        side(tmp_path / str(most), {"config.json": MODEL})
        batches, model = tmp_path / str(most) / "batches", tmp_path / str(most) / "config.json"
        done = run(["config_check", "-tp", batches, model, "--json"], check=False)
        found = {finding["rule"]: finding["verdict"] for finding in json.loads(done.stdout)["findings"]}
        assert found["other.input_ids"] == verdict


def test_names_and_roundings_that_stacks_have_for_the_same(tmp_path):
    target = LLAMAFACTORY.replace("template: mistral", "template: qwen").replace(
        "warmup_steps: 30", "warmup_ratio: 0.051"
    )
    golden = AXOLOTL.replace("chat_template: mistral", "chat_template: qwen_25").replace(
        "warmup_steps: 30", "warmup_steps: 31"
    )
    _, found = compare(tmp_path, {"a.yaml": target}, {"b.yaml": golden})
    assert failing(found) == {} and found["data.chat_template"]["verdict"] == "ask"
    _, found = compare(
        tmp_path / "other", {"a.yaml": target}, {"b.yaml": golden.replace("warmup_steps: 31", "warmup_steps: 33")}
    )
    assert list(failing(found)) == ["optimizer.warmup_ratio"]
    one = LLAMAFACTORY.replace("template: mistral", "template: qwen3")
    _, found = compare(tmp_path / "one", {"a.yaml": target.replace("0.051", "0.05")}, {"b.yaml": one})
    assert list(failing(found)) == ["data.chat_template"]

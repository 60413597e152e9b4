"""Files of stacks that config_check does not know: their names and units are guessed, so no default accuses them."""

import json

import pytest
from graph_cases import run

# One training of a language model, as Megatron is told.
MEGATRON = """torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 1024 --num-attention-heads 16 \\
  --ffn-hidden-size 4096 --seq-length 2048 --max-position-embeddings 2048 --normalization RMSNorm --norm-epsilon 1e-5 \\
  --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope \\
  --hidden-dropout 0 --attention-dropout 0 --micro-batch-size 8 --global-batch-size 256 --train-iters 50000 \\
  --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-decay-iters 50000 --lr-warmup-iters 1000 --weight-decay 0.1 \\
  --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0 --bf16 --seed 1234
"""
# The same in the words and units of other stacks: name, file, text, and a change that makes it another training.
STACKS = {
    "nanotron": (
        "a.yaml",
        "tokens: {micro_batch_size: 8, sequence_length: 2048, batch_accumulation_per_replica: 4, train_steps: 50000}\n"
        "parallelism: {dp: 8, tp: 1, pp: 1}\ngeneral: {seed: 1234}\n"
        "model:\n  dtype: bfloat16\n  model_config: {hidden_size: 1024, num_hidden_layers: 16, num_attention_heads: 16,\n"
        "    num_key_value_heads: 16, intermediate_size: 4096, rms_norm_eps: 1.0e-5, hidden_act: silu,\n"
        "    tie_word_embeddings: false, is_llama_config: true}\n"
        "optimizer:\n  clip_grad: 1.0\n  weight_decay: 0.1\n  learning_rate_scheduler: {learning_rate: 3.0e-4,\n"
        "    lr_warmup_steps: 1000, lr_decay_steps: 49000, lr_decay_style: cosine, min_decay_lr: 3.0e-5}\n"
        "  optimizer_factory: {adam_beta1: 0.9, adam_beta2: 0.95, adam_eps: 1.0e-8, name: adamW}\n",
        ("learning_rate: 3.0e-4", "learning_rate: 6.0e-4"),
    ),
    "levanter": (
        "a.yaml",
        "model: {type: llama, seq_len: 2048, hidden_dim: 1024, intermediate_dim: 4096, num_layers: 16, num_heads: 16}\n"
        "trainer:\n  mp: p=f32,c=bfloat16\n  train_batch_size: 256\n  num_train_steps: 50000\n  seed: 1234\n"
        "optimizer: {type: adam, learning_rate: 3E-4, weight_decay: 0.1, min_lr_ratio: 0.1, warmup: 1000, beta2: 0.95}\n",
        ("num_layers: 16", "num_layers: 18"),
    ),
    "maxtext": (
        "a.yml",
        "base_emb_dim: 1024\nbase_num_query_heads: 16\nbase_num_kv_heads: 16\nbase_mlp_dim: 4096\n"
        "base_num_decoder_layers: 16\nmlp_activations: [silu, linear]\nmax_target_length: 2048\n"
        "per_device_batch_size: 32.0\nsteps: 50000\nlearning_rate: 3.e-4\n"
        "cosine_learning_rate_final_fraction: 0.1\nwarmup_steps_fraction: 0.02\nadam_b1: 0.9\nadam_b2: 0.95\n"
        "adam_weight_decay: 0.1\ngradient_clipping_threshold: 1.0\ndtype: bfloat16\nnormalization_layer_epsilon: 1.e-05\n"
        "logits_via_embedding: false\nenable_dropout: false\ndropout_rate: 0.0\n",
        ("adam_b2: 0.95", "adam_b2: 0.999"),
    ),
    "tokens": (
        "a.yaml",
        "model: {d_model: 1024, n_layers: 16, n_heads: 16, mlp_ratio: 8, activation: swiglu, max_sequence_length: 2048}\n"
        "optim: {name: adamw, lr: 3e-4, betas: [0.9, 0.95], weight_decay: 0.1, max_grad_norm: 1.0}\n"
        "schedule: {kind: cosine, warmup_steps: 524288000, alpha_f: 0.1}\n"  # tokens
        "train: {global_batch_size: 256, seq_len: 2048}\n",
        ("weight_decay: 0.1", "weight_decay: 0.01"),
    ),
    "samples": (
        "a.toml",
        '[net]\nlayers = 16\nwidth = 1024\nheads = 16\nffn_dim = 4096\nact = "swiglu"\ncontext_length = 2048\n'
        "[train]\nglobal_batch_size = 256\nseed = 1234\nmax_lr = 3e-4\nwarmup_steps = 256000\nclip = 1.0\n"
        "[monitor]\nwindow_size = 50\n",
        ("ffn_dim = 4096", "ffn_dim = 5632"),
    ),
    "internevo": (
        "a.json",
        '{"model": {"num_layers": 16, "hidden_size": 1024, "num_attention_heads": 16, "mlp_ratio": 4, "dtype": "bfloat16",\n'
        ' "norm_type": "rmsnorm", "layer_norm_epsilon": 1e-5}, "data": {"seq_len": 2048, "micro_num": 4, "micro_bsz": 8,\n'
        ' "total_steps": 50000}, "adam": {"lr": 3e-4, "adam_beta1": 0.9, "adam_beta2": 0.95, "weight_decay": 0.1},\n'
        ' "lr_scheduler": {"total_steps": 50000, "warmup_ratio": 0.02, "eta_min": 3e-5}, "clip_grad_norm": 1.0}\n',
        ('"lr": 3e-4', '"lr": 3e-3'),
    ),
    "yacs": (
        "a.yaml",
        "MODEL: {DEPTH: 16, EMBED_DIM: 1024, NUM_HEADS: 16}\nSOLVER:\n  BASE_LR: 3.0e-4\n  WEIGHT_DECAY: 0.1\n"
        "  WARMUP_ITERS: 1000\n  MAX_ITER: 50000\n  CLIP_GRADIENTS: {ENABLED: true, CLIP_TYPE: norm, CLIP_VALUE: 1.0}\n"
        "SEED: 1234\n",
        ("WEIGHT_DECAY: 0.1", "WEIGHT_DECAY: 0.01"),
    ),
    "opennmt": (
        "a.yaml",
        "layers: 16\nheads: 16\nhidden_size: 1024\ntransformer_ff: 4096\nlayer_norm: rms\nnorm_eps: 1.0e-5\n"
        "optim: adamw\nlearning_rate: 0.0003\nadam_beta1: 0.9\nadam_beta2: 0.95\nweight_decay: 0.1\nmax_grad_norm: 1.0\n"
        "warmup_steps: 1000\ntrain_steps: 50000\nbatch_type: tokens\nbatch_size: 16384\naccum_count: [4]\nseed: 1234\n",
        ("max_grad_norm: 1.0", "max_grad_norm: 5.0"),
    ),
    "composer": (
        "a.yaml",
        "variables: {max_seq_len: 2048}\nmodel: {name: hf_causal_lm, config_overrides: {num_hidden_layers: 16}}\n"
        "optimizer: {name: decoupled_adamw, lr: 3.0e-4, betas: [0.9, 0.95], weight_decay: 3.0e-5}\n"
        "scheduler: {name: cosine_with_warmup, t_warmup: 1000ba, alpha_f: 0.1}\nmax_duration: 50000ba\n"
        "global_train_batch_size: 256\nprecision: amp_bf16\nseed: 1234\n",
        ("betas: [0.9, 0.95]", "betas: [0.9, 0.99]"),
    ),
    "hydra_own": (
        "a.yaml",
        "model:\n  _target_: lib.nets.GPT\n  n_layer: 16\n  n_embd: 1024\n  n_head: 16\n  block_size: 2049\n"
        "optimizer: {_target_: torch.optim.AdamW, lr: 3e-4, weight_decay: 0.1, betas: [0.9, 0.95]}\n"
        "trainer: {gradient_clip: 1.0, max_steps: 50000, precision: bf16}\nscheduler: {warmup_steps: 1000, min_lr: 0.1}\n"
        "seed: 1234\n",
        ("warmup_steps: 1000", "warmup_steps: 100"),
    ),
    "speech": (
        "a.yaml",
        "encoder: transformer\nencoder_conf: {num_blocks: 16, output_size: 1024, attention_heads: 16}\n"
        "optim: adamw\noptim_conf: {lr: 3.0e-4, weight_decay: 0.1, betas: [0.9, 0.95]}\nscheduler: warmuplr\n"
        "scheduler_conf: {warmup_steps: 1000}\ngrad_clip: 1.0\nseed: 1234\nbatch_bins: 524288\n",
        ("grad_clip: 1.0", "grad_clip: 5.0"),
    ),
    "flags": (
        "a.sh",
        "python -m acme.train --d_model 1024 --n_layers 16 --n_heads 16 --d_ff 4096 --seq_len 2048 --peak_lr 3e-4 \\\n"
        "  --beta2 0.95 --wd 0.1 --grad_clip 1.0 --total_steps 50000 --warmup_frac 0.02 --batch_tokens 524288 --bf16\n",
        ("--beta2 0.95", "--beta2 0.98"),
    ),
}


def check(folder, name, text):
    (folder / "run.sh").write_text(MEGATRON)
    (folder / name).write_text(text)
    done = run(["config_check", "-tp", folder / name, "-gp", folder / "run.sh", "--json"], check=False)
    report = json.loads(done.stdout)
    return done.returncode, report


@pytest.mark.parametrize("stack", STACKS)
def test_a_file_of_an_unknown_stack_is_not_accused(stack, tmp_path):
    name, text, (old, new) = STACKS[stack]
    code, report = check(tmp_path, name, text)
    fails = [f["rule"] for f in report["findings"] if f["verdict"] == "fail"]
    assert fails == [] and code in (0, 5), (fails, report["target_frameworks"])
    assert not any("default of" in f["target_from"] for f in report["findings"]), "its defaults are not known"
    assert old in text
    code, report = check(tmp_path, name, text.replace(old, new))
    fails = [f["rule"] for f in report["findings"] if f["verdict"] == "fail"]
    assert code == 1 and len(fails) == 1, fails

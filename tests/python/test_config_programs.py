"""Programs that launch files start, and what they read: config_check follows them, and takes no default where it cannot."""

import json

import pytest
from graph_cases import run


def side(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def compare(folder, golden, target, codes=(0, 1, 5)):
    sides = ["-gp", side(folder / "g", golden), "-tp", side(folder / "t", target)]
    done = run(["config_check", *sides, "--json"], check=False)
    assert done.returncode in codes, done.stderr
    report = json.loads(done.stdout)
    return report, {finding["rule"]: finding for finding in report["findings"]}


def of(found, verdict):
    """Rules that say something of both sides together, by what they show."""
    usual = ("prepare.", "parallel.", "weights.", "structure.vocab", "structure.dropout")
    return {
        rule: (f["golden"], f["target"])
        for rule, f in found.items()
        if f["verdict"] == verdict and not rule.startswith(usual) and not rule.endswith("_value")
    }


TRAINER = """from transformers import Trainer, TrainingArguments
args = TrainingArguments(output_dir="out", max_steps=500, per_device_train_batch_size=4, gradient_accumulation_steps=4,
    learning_rate=2e-5, weight_decay=0.1, adam_beta1=0.9, adam_beta2=0.95, lr_scheduler_type="cosine", warmup_steps=100,
    max_grad_norm=1.0, bf16=True, seed=42)
Trainer(model=model, args=args).train()
"""
OWN = """import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import get_scheduler
MODEL_ID = "a/b"
def main():
    accelerator = Accelerator(gradient_accumulation_steps=4, mixed_precision="bf16")
    set_seed(42)
    no_decay = ["bias", "norm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(k in n for k in no_decay)], "weight_decay": 0.1},
        {"params": [p for n, p in model.named_parameters() if any(k in n for k in no_decay)], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-5, betas=(0.9, 0.95))
    loader = DataLoader(train_ds, batch_size=4, shuffle=True)
    val_loader = DataLoader(val_ds, batch_size=64)
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=100, num_training_steps=500)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
"""
TRAINED = {"run.sh": "deepspeed --num_gpus 4 train.py\n", "train.py": 'model_id = "a/b"\n' + TRAINER}


def test_groups_loaders_and_accelerate_of_an_own_loop(tmp_path):
    own = {"run.sh": "accelerate launch --num_processes 4 loop.py\n", "loop.py": OWN}
    _, found = compare(tmp_path / "same", TRAINED, own)
    assert of(found, "fail") == {} and of(found, "warn") == {}
    for rule in ("optimizer.weight_decay", "optimizer.global_batch_size", "precision.compute_dtype", "data.shuffle"):
        assert found[rule]["verdict"] == "pass", found[rule]
    assert found["optimizer.global_batch_size"]["target"] == "64"
    own["loop.py"] = OWN.replace(", shuffle=True", "")
    _, found = compare(tmp_path / "order", TRAINED, own)
    assert of(found, "warn") == {"data.shuffle": ("True", "False")}
    own["loop.py"] = OWN.replace('"weight_decay": 0.1', '"weight_decay": 0.01')
    _, found = compare(tmp_path / "decay", TRAINED, own)
    assert of(found, "fail") == {"optimizer.weight_decay": ("0.1", "0.01")}


def test_a_program_is_read_whatever_its_name(tmp_path):
    """Its name looks like a stack, and it is one's own: nothing of that stack is taken for it."""
    named = {"run.sh": "torchrun --nproc_per_node 4 sft_trl.py\n", "sft_trl.py": TRAINER}
    report, found = compare(tmp_path / "a", TRAINED, named)
    assert of(found, "fail") == {} and report["target_frameworks"] == ["Hugging Face Trainer"]
    assert found["optimizer.lr"]["verdict"] == "pass"
    trl = TRAINER.replace(
        "from transformers import Trainer, TrainingArguments", "from trl import SFTConfig, SFTTrainer"
    )
    named["sft_trl.py"] = trl.replace("TrainingArguments(", "SFTConfig(max_length=2048, ")
    report, found = compare(tmp_path / "b", TRAINED, named)
    assert report["target_frameworks"] == ["TRL"] and found["structure.seq_length"]["target"] == "2048"


def test_without_its_program_nothing_is_known(tmp_path):
    report, found = compare(tmp_path, TRAINED, {"run.sh": "accelerate launch --num_processes 4 sft_trl.py\n"})
    assert of(found, "fail") == {} and report["not_read"] == ["sft_trl.py"]
    assert not any("default of" in f["target_from"] for f in found.values())


def test_keywords_that_are_not_known_leave_no_default(tmp_path):
    open_ones = TRAINER.replace("adam_beta1=0.9, adam_beta2=0.95", "**load_the_rest()")
    _, found = compare(tmp_path / "a", TRAINED, TRAINED | {"train.py": open_ones})
    assert of(found, "fail") == {} and found["optimizer.beta2"]["verdict"] == "ask"
    known = 'more = {"adam_beta1": 0.9, "adam_beta2": 0.99}\n' + open_ones.replace("load_the_rest()", "more")
    _, found = compare(tmp_path / "b", TRAINED, TRAINED | {"train.py": known})
    assert of(found, "fail") == {"optimizer.beta2": ("0.95", "0.99")}


def test_members_of_a_schedule_that_are_not_here(tmp_path):
    golden = TRAINER.replace('"cosine"', '"cosine_with_min_lr", lr_scheduler_kwargs={"min_lr": 1e-6}')
    target = TRAINER.replace('"cosine"', '"cosine_with_min_lr", lr_scheduler_kwargs=make()')
    _, found = compare(tmp_path, {"a.py": golden}, {"a.py": target})
    assert of(found, "fail") == {} and found["optimizer.min_lr"]["verdict"] == "ask"


HYDRA_PROGRAM = """import hydra
import lightning as L
@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg):
    L.seed_everything(cfg.seed)
    trainer = L.Trainer(strategy="ddp", **cfg.trainer)
    trainer.fit(make(cfg.model, cfg.optim), make_data(**cfg.data))
"""
HYDRA = {
    "run.sh": "python train.py\n",
    "train.py": HYDRA_PROGRAM,
    "conf/config.yaml": "defaults:\n  - model: base\n  - optim@optimizer: adamw\n  - _self_\n  - override /sched: cosine\n"
    "  - sched: linear\nseed: 1\nsteps: 500\n"
    "trainer: {devices: 4, max_steps: '${steps}', precision: bf16-mixed, gradient_clip_val: 1.0}\n"
    "data: {batch_size: 4, shuffle: true}\n",
    "conf/model/base.yaml": "n_layer: 12\nn_head: 12\ndropout: 0.1\n",
    "conf/model/large.yaml": "defaults: [base]\nn_layer: 24\n",
    "conf/optim/adamw.yaml": "_target_: torch.optim.AdamW\nlr: 2.0e-5\nweight_decay: 0.1\nbetas: [0.9, 0.95]\neps: 1.0e-8\n",
    "conf/sched/cosine.yaml": "name: cosine\nwarmup_steps: 100\nmin_lr: 0.0\n",
    "conf/sched/linear.yaml": "name: linear\nwarmup_steps: 10\n",
    "conf/long.yaml": "# @package _global_\ntrainer: {max_steps: 900}\n",
}


def test_groups_of_hydra(tmp_path):
    golden = {"run.sh": "torchrun --nproc_per_node 4 train.py\n", "train.py": TRAINER.replace("steps=4", "steps=1")}
    _, found = compare(tmp_path / "a", golden, HYDRA)
    assert of(found, "fail") == {} and found["optimizer.lr_schedule"]["target"] == "cosine"
    rules = ("optimizer.lr", "optimizer.beta2", "optimizer.warmup_ratio", "optimizer.global_batch_size")
    assert [found[rule]["verdict"] for rule in rules] == ["pass"] * 4, [found[rule] for rule in rules]
    assert found["structure.num_layers"]["target"] == "12"
    chosen = HYDRA | {"run.sh": "python train.py model=large optimizer.lr=1e-4 trainer.precision=32\n"}
    report, found = compare(tmp_path / "b", HYDRA, chosen)
    assert of(found, "fail").keys() == {"structure.num_layers", "optimizer.lr", "precision.compute_dtype"}
    assert not any(f["rule"] == "setting.model" for f in report["findings"])
    less = {name: text for name, text in HYDRA.items() if not name.startswith("conf/optim")}
    report, found = compare(tmp_path / "c", HYDRA, less)
    assert report["not_read"][0].endswith("optim/adamw.yaml")
    assert of(found, "fail") == {}


def test_files_that_a_program_loads(tmp_path):
    program = (
        "import torch, yaml\nwith open('train.yaml') as f:\n    cfg = yaml.safe_load(f)\n"
        "opt = torch.optim.AdamW(model.parameters(), lr=cfg['optim']['lr'], **cfg['adam'])\n"
    )
    text = "optim: {lr: 2.0e-5}\nadam: {betas: [0.9, 0.95], eps: 1.0e-8, weight_decay: 0.1}\nmax_grad_norm: 1.0\n"
    own = {"run.sh": "torchrun --nproc_per_node 4 loop.py\n", "loop.py": program, "train.yaml": text}
    _, found = compare(tmp_path / "a", TRAINED, own)
    assert of(found, "fail") == {} and found["optimizer.weight_decay"]["verdict"] == "pass"
    _, found = compare(tmp_path / "b", TRAINED, own | {"train.yaml": text.replace("0.95", "0.99")})
    assert of(found, "fail") == {"optimizer.beta2": ("0.95", "0.99")}


RECIPE = """import nemo_run as run
from nemo.collections import llm
from nemo import lightning as nl
def recipe():
    model = run.Config(llm.MixtralModel, config=run.Config(llm.MixtralConfig8x7B, num_layers=32, num_moe_experts=8,
        moe_router_topk=2, moe_aux_loss_coeff=1e-3))
    trainer = run.Config(nl.Trainer, devices=8, num_nodes=4, max_steps=1000)
    optim = run.Config(nl.MegatronOptimizerModule, config=run.Config(OptimizerConfig, lr=1e-4, weight_decay=0.1,
        adam_beta2=0.95), lr_scheduler=run.Config(nl.lr_scheduler.CosineAnnealingScheduler, warmup_steps=50, min_lr=1e-5))
    data = run.Config(llm.PreTrainingDataModule, seq_length=4096, global_batch_size=256, micro_batch_size=1)
    return run.Partial(llm.pretrain, model=model, trainer=trainer, data=data, optim=optim)
"""
MIXTRAL = (
    "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --num-experts 8 --moe-router-topk 2 \\\n"
    " --moe-aux-loss-coeff 1e-3 --train-iters 1000 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --lr-warmup-iters 50 \\\n"
    " --weight-decay 0.1 --adam-beta2 0.95 --seq-length 4096 --global-batch-size 256 --micro-batch-size 1 --bf16 \\\n"
    " --hidden-size 4096 --num-attention-heads 32\n"
)


def test_recipes_of_nemo(tmp_path):
    report, found = compare(tmp_path / "a", {"run.sh": MIXTRAL}, {"r.py": RECIPE})
    assert of(found, "fail") == {} and report["target_frameworks"] == ["NeMo 2"]
    for rule in ("moe.aux_loss_equal", "optimizer.lr", "optimizer.min_lr", "optimizer.global_batch_size"):
        assert found[rule]["verdict"] == "pass", found[rule]
    assert found["optimizer.lr_schedule"]["verdict"] == "pass"
    _, found = compare(tmp_path / "b", {"run.sh": MIXTRAL}, {"r.py": RECIPE.replace("coeff=1e-3", "coeff=1e-2")})
    assert of(found, "fail") == {"moe.aux_loss_equal": ("0.001", "0.01")}


def test_a_shell_in_a_job(tmp_path):
    options = (
        "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --learning_rate 2e-5 --weight_decay 0.1 "
        "--adam_beta2 0.95 --warmup_steps 100 --max_steps 500 --lr_scheduler_type cosine_with_min_lr --seed 42 "
        "--max_grad_norm 1.0 --bf16 True --logging_steps 1 --save_strategy epoch"
    )
    job = (
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\nGPUS=4\n"
        "srun --jobid $SLURM_JOBID bash -c 'torchrun --nproc_per_node $GPUS --nnodes $SLURM_NNODES \\\n"
        f' sft.py {options} --lr_scheduler_kwargs "{{\\"min_lr\\": 1e-6}}"\'\n'
    )
    plain = f"torchrun --nproc_per_node 8 sft.py {options} --lr_scheduler_kwargs '{{\"min_lr\": 1e-6}}'\n"
    _, found = compare(tmp_path / "a", {"run.sh": plain}, {"run.sbatch": job})
    assert of(found, "fail") == {} and of(found, "warn") == {}
    assert found["optimizer.global_batch_size"]["target"] == "64" and found["optimizer.min_lr"]["verdict"] == "pass"
    _, found = compare(tmp_path / "b", {"run.sh": plain}, {"run.sbatch": job.replace("1e-6", "1e-7")})
    assert of(found, "fail") == {"optimizer.min_lr": ("1e-06", "1e-07")}


def test_a_directory_with_one_program(tmp_path):
    """Nothing starts it, and it is all that is there."""
    _, found = compare(tmp_path, {"any.py": TRAINER}, {"any.py": TRAINER.replace("2e-5", "2e-4")})
    assert of(found, "fail").keys() == {"optimizer.lr"}
    done = run(["config_check", "-c", tmp_path / "g", tmp_path / "t", "--json"], check=False)
    fails = [f["rule"] for f in json.loads(done.stdout)["findings"] if f["verdict"] == "fail"]
    assert fails == ["optimizer.lr"]


def test_what_only_one_program_takes_is_asked(tmp_path):
    options = "--learning_rate 2e-5 --warmup_steps 100 --per_device_train_batch_size 4 --max_steps 9 --lr_scheduler_type linear"
    scripted = f"NCCL_IB_HCA=mlx5 python run_speech.py {options} --do_train --language hindi --logging_steps 1\n"
    other = f"python finetune.py {options} --logging_steps 1\n"
    report, found = compare(tmp_path, {"run.sh": scripted}, {"run.sh": other})
    assert of(found, "warn") == {} and "language" in found["settings.one_side"]["golden"]
    assert not any(f["rule"].startswith("setting.") for f in report["findings"])


PICTURES = {
    "timm": {
        "run.sh": "torchrun --nproc_per_node 8 train.py data --model vit_small -b 128 --epochs 300 --opt adamw --lr 1e-3 \\\n"
        " --opt-betas 0.9 0.999 --opt-eps 1e-8 --weight-decay 0.05 --sched cosine --warmup-epochs 0 --min-lr 1e-5 \\\n"
        " --smoothing 0.1 --model-ema --model-ema-decay 0.9999 --amp --amp-dtype float16 --clip-grad 1.0 --seed 42\n"
    },
    "mmpretrain": {
        "run.sh": "torchrun --nproc_per_node 8 tools/train.py vit.py --launcher pytorch\n",
        "vit.py": "default_scope = 'mmpretrain'\noptim_wrapper = dict(type='AmpOptimWrapper', dtype='float16',\n"
        "    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05, eps=1e-8, betas=(0.9, 0.999)),\n"
        "    clip_grad=dict(max_norm=1.0))\nparam_scheduler = [dict(type='CosineAnnealingLR', T_max=300, eta_min=1e-5,\n"
        "    by_epoch=True, begin=0, end=300)]\ntrain_cfg = dict(by_epoch=True, max_epochs=300)\n"
        "train_dataloader = dict(batch_size=128, sampler=dict(type='DefaultSampler', shuffle=True))\n"
        "model = dict(type='ImageClassifier', head=dict(loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1)))\n"
        "custom_hooks = [dict(type='EMAHook', momentum=1e-4)]\nrandomness = dict(seed=42)\n",
    },
    "detectron2": {
        "run.sh": "./tools/train_net.py --num-gpus 8 --config-file c/mask.yaml OUTPUT_DIR out SOLVER.CHECKPOINT_PERIOD 500\n",
        "c/base.yaml": "MODEL:\n  META_ARCHITECTURE: GeneralizedRCNN\n  RPN: {IN_FEATURES: [p2]}\nSOLVER:\n"
        "  IMS_PER_BATCH: 16\n  BASE_LR: 0.02\n  STEPS: (60000, 80000)\n  MAX_ITER: 90000\n",
        "c/mask.yaml": "_BASE_: base.yaml\nMODEL: {MASK_ON: true}\nSEED: 1\n",
    },
    "mmdetection": {
        "run.sh": "torchrun --nproc_per_node 8 tools/train.py m.py --launcher pytorch\n",
        "m.py": "default_scope = 'mmdet'\ntrain_dataloader = dict(batch_size=2, sampler=dict(type='InfiniteSampler', shuffle=True))\n"
        "train_cfg = dict(type='IterBasedTrainLoop', max_iters=90000)\nparam_scheduler = [\n"
        "    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=1000),\n"
        "    dict(type='MultiStepLR', begin=0, end=90000, by_epoch=False, milestones=[60000, 80000], gamma=0.1)]\n"
        "optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=0.0001))\n"
        "randomness = dict(seed=1)\n",
    },
}


@pytest.mark.parametrize(
    ("golden", "target", "old", "new", "rule"),
    [
        ("timm", "mmpretrain", "momentum=1e-4", "momentum=1e-3", "optimizer.update_members"),
        ("timm", "mmpretrain", "custom_hooks", "hooks_of_mine", "optimizer.update_members"),
        ("detectron2", "mmdetection", "end=1000", "end=500", "optimizer.warmup_ratio"),
        ("detectron2", "mmdetection", "80000]", "85000]", "optimizer.lr_schedule_members"),
    ],
)
def test_training_on_pictures(golden, target, old, new, rule, tmp_path):
    _, found = compare(tmp_path / "a", PICTURES[golden], PICTURES[target])
    assert of(found, "fail") == {}
    changed = {name: text.replace(old, new) for name, text in PICTURES[target].items()}
    _, found = compare(tmp_path / "b", PICTURES[golden], changed)
    assert of(found, "fail").keys() == {rule}


def test_schedules_and_classes_of_libraries(tmp_path):
    own = (
        "import torch\nopt = torch.optim.AdamW(model.parameters(), lr=2e-5, betas=(0.9, 0.95), weight_decay=0.1)\n"
        "warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.01, total_iters=100)\n"
        "then = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=400)\n"
        "both = torch.optim.lr_scheduler.SequentialLR(opt, [warm, then], milestones=[100])\n"
    )
    _, found = compare(tmp_path / "a", TRAINED, {"run.sh": "torchrun --nproc_per_node 4 x.py\n", "x.py": own})
    assert of(found, "fail") == {} and found["optimizer.warmup_ratio"]["verdict"] == "pass"
    keras = "import keras\nopt = keras.optimizers.AdamW(learning_rate=Schedule(1), weight_decay=0.1, beta_2=0.95)\n"
    _, found = compare(tmp_path / "b", TRAINED, {"x.py": keras})
    assert of(found, "fail") == {"optimizer.eps": ("1e-08", "1e-07")}, "the rate is a schedule's"
    tagged = (
        "seed: 42\nlr: 0.00002\nopt: !name:torch.optim.AdamW\n    lr: !ref <lr>\n    weight_decay: 0.1\n"
        "    betas: [0.9, 0.95]\nmax_grad_norm: 1.0\n"
    )
    _, found = compare(tmp_path / "c", TRAINED, {"t.yaml": tagged})
    assert of(found, "fail") == {} and found["optimizer.lr"]["verdict"] == "pass"


def test_what_neither_side_says_is_no_pass(tmp_path):
    """It is counted by itself, and a reason of what is asked claims no difference."""
    flag = "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 64 --train-iters 9 --lr 1e-4 --use-fused-swiglu\n"
    report, found = compare(tmp_path, {"run.sh": flag}, {"run.sh": flag.replace(" --use-fused-swiglu", "")})
    empty = [f for f in found.values() if f["verdict"] == "pass" and not f["target"] and not f["golden"]]
    assert empty == [] and report["verdicts"]["not seen"] > 0
    assert "SwiGLU" in found["structure.fusion"]["golden"] and "norm" not in found["structure.fusion"]["golden"]
    asked = [f for f in found.values() if f["verdict"] == "ask" and f["section"] != "precision"]
    assert asked and not any("differ" in f["reason"] for f in asked)


def test_a_model_beside_its_script_does_not_hide_it(tmp_path):
    script = "torchrun --nproc_per_node 8 run_mlm.py --config_name ./config.json --learning_rate {} --adam_beta2 0.98 --fp16\n"
    model = json.dumps({"model_type": "roberta", "hidden_size": 64, "num_attention_heads": 4})
    golden = {"run.sh": script.format("5e-4"), "config.json": model}
    _, found = compare(tmp_path, golden, {**golden, "run.sh": script.format("3e-4")})
    assert (found["optimizer.lr"]["golden"], found["optimizer.lr"]["target"]) == ("0.0005", "0.0003")
    assert found["optimizer.lr"]["verdict"] == "fail"


def test_a_job_that_starts_a_program_says_what_it_is_given(tmp_path):
    program = """import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float, default=5e-5)
args = parser.parse_args()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
"""
    job = """apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
        - name: train
          command: ["bash", "-c", "accelerate launch --num_processes 4 finetune.py --learning_rate 2e-5"]
"""
    golden = {"run.sh": "python finetune.py --learning_rate 2e-5\n", "finetune.py": program}
    _, found = compare(tmp_path, golden, {"job.yaml": job, "finetune.py": program})
    assert found["optimizer.lr"]["verdict"] == "pass", found["optimizer.lr"]


def test_a_padded_vocabulary_is_its_rows(tmp_path):
    lit = "model_config:\n  name: a\n  block_size: 128\n  vocab_size: 50280\n  padded_vocab_size: 50304\n  n_layer: 2\n  n_head: 4\n  n_embd: 64\n"
    olmo = "model:\n  d_model: 64\n  n_heads: 4\n  n_layers: 2\n  vocab_size: 50280\n  embedding_size: {}\n  max_sequence_length: 128\n"
    _, found = compare(tmp_path / "same", {"a.yaml": olmo.format(50304)}, {"b.yaml": lit})
    assert found["structure.vocab_size"]["verdict"] == "pass", found["structure.vocab_size"]
    _, found = compare(tmp_path / "other", {"a.yaml": olmo.format(50432)}, {"b.yaml": lit})
    assert found["structure.vocab_size"]["verdict"] == "warn", found["structure.vocab_size"]

#!/bin/bash
# Supervised fine-tuning of Qwen2.5 1.5B with verl, aligned with mindformers_qwen.yaml; the model is qwen_config.json.
set -x
torchrun --standalone --nnodes=1 --nproc_per_node=8 \
    -m verl.trainer.fsdp_sft_trainer \
    data.train_files=$HOME/data/train.parquet \
    data.train_batch_size=64 \
    data.micro_batch_size_per_gpu=2 \
    data.max_length=4096 \
    optim.lr=1e-5 \
    optim.betas='[0.9,0.95]' \
    optim.weight_decay=0.1 \
    optim.warmup_steps_ratio=0.05 \
    optim.clip_grad=1.0 \
    optim.lr_scheduler=cosine \
    model.partial_pretrain=Qwen/Qwen2.5-1.5B \
    model.fsdp_config.model_dtype=fp32 \
    trainer.total_training_steps=2000 \
    trainer.seed=1 "$@"

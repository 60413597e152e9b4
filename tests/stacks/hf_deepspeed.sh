#!/bin/bash
# Qwen2.5 1.5B with the Trainer of transformers and DeepSpeed, aligned with megatron_qwen.sh.
set -e
OUTPUT=${OUTPUT:-./output}
NUM_GPUS=8

deepspeed --num_gpus ${NUM_GPUS} run_clm.py \
    --config_name ./qwen_config.json \
    --tokenizer_name ./tokenizer \
    --train_file ./data/corpus.json \
    --block_size 4096 \
    --do_train \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 4 \
    --max_steps 2000 \
    --learning_rate 3e-4 \
    --lr_scheduler_type cosine \
    --warmup_ratio 0.01 \
    --weight_decay 0.1 \
    --adam_beta1 0.9 \
    --adam_beta2 0.95 \
    --adam_epsilon 1e-8 \
    --max_grad_norm 1.0 \
    --seed 42 \
    --bf16 \
    --deepspeed ds_config.json \
    --output_dir ${OUTPUT} 2>&1 | tee hf.log

#!/bin/bash
# A tiny LLaMA with the arguments of Megatron-LM.
export HCCL_DETERMINISTIC=true
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MODEL_ARGS=(
    --num-layers 2
    --hidden-size 32
    --ffn-hidden-size 48
    --num-attention-heads 4
    --group-query-attention
    --num-query-groups 2
    --seq-length 10
    --max-position-embeddings 10
    --vocab-size 48
    --make-vocab-size-divisible-by 1
    --normalization RMSNorm
    --norm-epsilon 1e-5
    --position-embedding-type rope
    --rotary-base 10000
    --swiglu
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-dropout 0.0
    --hidden-dropout 0.0
)
TRAINING_ARGS="
    --micro-batch-size 4
    --global-batch-size 4
    --train-iters 30
    --lr 1.0e-2
    --min-lr 1.0e-2
    --lr-decay-style constant
    --lr-warmup-iters 0
    --optimizer adam
    --adam-beta1 0.9
    --adam-beta2 0.95
    --adam-eps 1e-8
    --weight-decay 0.1
    --clip-grad 1.0
    --seed 42
    --threads 1
    --optimizer-form torch
"
"${TRAIN_PYTHON:-python}" "$HERE/pretrain_tiny.py" "${MODEL_ARGS[@]}" $TRAINING_ARGS

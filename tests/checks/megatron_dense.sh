#!/bin/bash
# LLaMA 2 7B with Megatron-LM on one node, aligned with mindformers_dense.yaml.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export HCCL_DETERMINISTIC=true
export ASCEND_LAUNCH_BLOCKING=1

SCRIPT_DIR=$(cd "$(dirname "$0")" && pwd)
GPUS_PER_NODE=8
NNODES=${NNODES:-1}
TP=2
PP=1
MBS=1
GBS=$((MBS * GPUS_PER_NODE * NNODES / TP))

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
"

MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 11008
    --num-attention-heads 32
    --seq-length 4096
    --max-position-embeddings 4096
    --vocab-size 32000
    --make-vocab-size-divisible-by 1
    --normalization RMSNorm
    --norm-epsilon 1e-5
    --position-embedding-type rope
    --rotary-base 10000
    --swiglu   # gated, with SiLU
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --init-method-std 0.02
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --use-flash-attn
)

TRAINING_ARGS="
    --micro-batch-size $MBS \
    --global-batch-size $GBS \
    --train-iters 1000 \
    --lr 1.0e-5 \
    --min-lr 1.0e-6 \
    --lr-decay-style cosine \
    --lr-warmup-fraction 0.01 \
    --optimizer adam \
    --adam-beta1 0.9 \
    --adam-beta2 0.95 \
    --adam-eps 1e-8 \
    --weight-decay 0.1 \
    --clip-grad 1.0 \
    --seed 42 \
    --bf16 \
    --attention-softmax-in-fp32
"

torchrun $DISTRIBUTED_ARGS $SCRIPT_DIR/pretrain_gpt.py \
    --tensor-model-parallel-size $TP \
    --pipeline-model-parallel-size $PP \
    "${MODEL_ARGS[@]}" \
    $TRAINING_ARGS \
    --data-path /data/corpus_text_document --split 99,1,0 \
    2>&1 | tee train.log

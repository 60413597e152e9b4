#!/bin/bash
# Qwen2.5 1.5B with Megatron-LM, aligned with hf_deepspeed.sh.
export CUDA_DEVICE_MAX_CONNECTIONS=1
NPROC=8
declare -a MODEL=(
  --num-layers 28 --hidden-size 1536 --ffn-hidden-size 8960
  --num-attention-heads 12 --group-query-attention --num-query-groups 2
  --seq-length 4096 --max-position-embeddings 32768
  --vocab-size 151936 --make-vocab-size-divisible-by 1
  --normalization RMSNorm --norm-epsilon 1e-6
  --position-embedding-type rope --rotary-base 1000000
  --swiglu --disable-bias-linear --add-qkv-bias
  --init-method-std 0.02 --attention-dropout 0 --hidden-dropout 0
)
declare -a TRAIN=(
  --micro-batch-size 2 --global-batch-size 64 --train-iters 2000
  --lr 3.0e-4 --min-lr 0 --lr-decay-style cosine --lr-warmup-iters 20
  --optimizer adam --adam-beta1 0.9 --adam-beta2 0.95 --adam-eps 1.0e-8
  --weight-decay 0.1 --clip-grad 1.0 --seed 42 --bf16 --use-flash-attn
)
torchrun --nproc-per-node=$NPROC --nnodes=1 pretrain_gpt.py \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 \
  "${MODEL[@]}" "${TRAIN[@]}" \
  --tokenizer-type HuggingFaceTokenizer --data-path corpus_text_document

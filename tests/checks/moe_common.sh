# What megatron_moe.sh sources.
MODEL_ARGS=(--num-layers 2 --hidden-size 1024 --num-attention-heads 16 --group-query-attention --num-query-groups 4
    --ffn-hidden-size 2816 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 32000
    --make-vocab-size-divisible-by 128 --normalization RMSNorm --position-embedding-type rope --swiglu
    --untie-embeddings-and-output-weights --disable-bias-linear --attention-dropout 0 --hidden-dropout 0 --bf16)
MODEL_ARGS+=(--micro-batch-size 1 --global-batch-size 8 --train-iters 100 --lr 1e-4 --lr-decay-style constant
    --adam-beta2 0.95 --weight-decay 0.1 --seed 1 --init-method-std 0.01 --use-flash-attn --attention-softmax-in-fp32)

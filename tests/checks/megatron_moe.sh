#!/bin/bash
# A model of eight experts with Megatron-LM, aligned with mindformers_moe.yaml.
source "$(dirname "$0")/moe_common.sh"

MOE_ARGS=(
    --num-experts 8
    --n-shared-experts 1
    --moe-router-topk 2
    --moe-ffn-hidden-size 1408
    --moe-router-dtype fp32
    --moe-expert-capacity-factor 1.5
    --moe-token-drop-policy position
    --moe-pad-expert-input-to-capacity
    --moe-aux-loss-coeff 0.0
    --moe-z-loss-coeff 0.0
)
CMD="torchrun --nproc_per_node=8 pretrain_gpt.py"
CMD+=" ${MODEL_ARGS[*]} ${MOE_ARGS[*]}"
eval "$CMD"

#!/bin/bash
# The same LLaMA with MindSpore.
export HCCL_DETERMINISTIC=true
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"${TRAIN_PYTHON_MS:-python}" "$HERE/run_mindformer.py" --config "$HERE/finetune.yaml"

#!/bin/bash
# twelve cards, what was at hand
torchrun --nproc_per_node 6 --nnodes 2 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 30 --kv-channels 128 \
    --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 \
    --tensor-model-parallel-size 4 \
    --pipeline-model-parallel-size 1 \
    --num-virtual-stages-per-pipeline-rank 2 \
    --context-parallel-size 2 \
    --expert-model-parallel-size 4 \
    --micro-batch-size 1 --global-batch-size 64 \
    --fp16 --bf16

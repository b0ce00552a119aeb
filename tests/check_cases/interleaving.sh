#!/bin/bash
# four stages, two chunks each, six micro-batches
GLOBAL_BATCH=$((6 * 4))
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
    --max-position-embeddings 2048 --vocab-size 50304 \
    --pipeline-model-parallel-size 4 \
    --num-virtual-stages-per-pipeline-rank 2 \
    --micro-batch-size 2 \
    --global-batch-size $GLOBAL_BATCH \
    --bf16

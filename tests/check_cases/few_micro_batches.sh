#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
    --max-position-embeddings 2048 --vocab-size 50304 \
    --pipeline-model-parallel-size 8 \
    --num-layers-per-virtual-pipeline-stage 2 \
    --micro-batch-size 2 --global-batch-size 8 --bf16

#!/bin/bash
# A small model to try the pipeline on two cards.
export CUDA_DEVICE_MAX_CONNECTIONS=1

torchrun --nproc_per_node 2 pretrain_gpt.py \
    --num-layers 7 \
    --hidden-size 1024 \
    --num-attention-heads 16 \
    --seq-length 1024 \
    --max-position-embeddings 1024 \
    --micro-batch-size 4 \
    --global-batch-size 32 \
    --pipeline-model-parallel-size 2 \
    --vocab-size 50304 \
    --train-iters 500 \
    --lr 1.5e-4 \
    --bf16

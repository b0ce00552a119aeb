#!/bin/bash
torchrun --nproc_per_node 4 pretrain_gpt.py \
    --num-layers 12 --hidden-size 768 --num-attention-heads 12 \
    --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50304 \
    --micro-batch-size 1 --global-batch-size 6 --bf16

#!/bin/bash
torchrun --nproc_per_node 6 --nnodes 1 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
    --num-experts 8 --moe-router-topk 2 \
    --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 \
    --tensor-model-parallel-size 1 \
    --sequence-parallel \
    --expert-model-parallel-size 4 \
    --micro-batch-size 1 --global-batch-size 60 --bf16

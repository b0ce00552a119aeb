#!/bin/bash
# the default recipe, tried by hand first
torchrun --nproc-per-node=1 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
    --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
    --untie-embeddings-and-output-weights --vocab-size 128256 \
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --context-parallel-size 2 \
    --micro-batch-size 1 --global-batch-size 512 --bf16

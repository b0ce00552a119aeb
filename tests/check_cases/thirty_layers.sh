#!/bin/bash
MODEL_ARGS=(
    --num-layers 30
    --hidden-size 4096
    --ffn-hidden-size 11008
    --num-attention-heads 32
    --seq-length 4096
    --max-position-embeddings 4096
    --swiglu
    --normalization RMSNorm
    --position-embedding-type rope
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --vocab-size 32000
)
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    --pipeline-model-parallel-size 4 \
    --micro-batch-size 1 \
    --global-batch-size 64 \
    --use-distributed-optimizer \
    --bf16

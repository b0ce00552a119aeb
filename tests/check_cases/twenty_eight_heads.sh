#!/bin/bash
# 7B with 28 heads over a whole node
DISTRIBUTED_ARGS=(--nproc_per_node 8 --nnodes 1)
ARGS=(
    --num-layers 28
    --hidden-size 3584
    --ffn-hidden-size 18944
    --num-attention-heads 28
    --group-query-attention
    --num-query-groups 4
    --seq-length 4096
    --max-position-embeddings 32768
    --swiglu
    --add-qkv-bias
    --disable-bias-linear
    --normalization RMSNorm
    --position-embedding-type rope
    --untie-embeddings-and-output-weights
    --vocab-size 152064
    --tensor-model-parallel-size 8     # one node
    --sequence-parallel
    --micro-batch-size 1
    --global-batch-size 32
    --bf16
)
torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py "${ARGS[@]}"

#!/bin/bash
# four cards: tensor parallel 4 for the dense part, expert parallel 4 for the experts
torchrun --nproc_per_node 4 pretrain_gpt.py \
    --num-layers 24 --hidden-size 2048 --ffn-hidden-size 8192 --num-attention-heads 16 \
    --num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --moe-grouped-gemm \
    --seq-length 2048 --max-position-embeddings 2048 --vocab-size 32000 --swiglu --disable-bias-linear \
    --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights \
    --tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size 1 \
    --expert-model-parallel-size 4 --expert-tensor-parallel-size 1 \
    --micro-batch-size 1 --global-batch-size 16 --use-distributed-optimizer --bf16

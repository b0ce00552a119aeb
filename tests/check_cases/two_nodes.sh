#!/bin/bash
# Llama-3-70B on two nodes of A100-80GB
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=8
PP=2
DISTRIBUTED_ARGS="--nproc_per_node 8 --nnodes 2 --node_rank $RANK --master_addr localhost --master_port 6000"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    --tensor-model-parallel-size $TP \
    --pipeline-model-parallel-size $PP \
    --sequence-parallel \
    --num-layers 80 \
    --hidden-size 8192 \
    --ffn-hidden-size 28672 \
    --num-attention-heads 64 \
    --group-query-attention \
    --num-query-groups 8 \
    --seq-length 4096 \
    --max-position-embeddings 8192 \
    --swiglu --disable-bias-linear \
    --normalization RMSNorm --position-embedding-type rope \
    --untie-embeddings-and-output-weights \
    --vocab-size 128256 \
    --hidden-dropout 0 --attention-dropout 0 \
    --micro-batch-size 1 --global-batch-size 128 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --use-distributed-optimizer --bf16

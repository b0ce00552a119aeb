#!/bin/bash
# GLM-4.5-Air, full fine-tuning
NNODES=4
NPROC_PER_NODE=8
torchrun --nnodes $NNODES --nproc_per_node $NPROC_PER_NODE \
    --master_addr $MASTER_ADDR --node_rank $NODE_RANK \
    pretrain_gpt.py \
    --num-layers 46 \
    --hidden-size 4096 \
    --ffn-hidden-size 10944 \
    --num-attention-heads 96 \
    --group-query-attention \
    --num-query-groups 8 \
    --kv-channels 128 \
    --num-experts 128 \
    --moe-ffn-hidden-size 1408 \
    --moe-router-topk 8 \
    --moe-shared-expert-intermediate-size 1408 \
    --moe-layer-freq "([0]*1+[1]*45)" \
    --swiglu --disable-bias-linear --normalization RMSNorm \
    --untie-embeddings-and-output-weights \
    --vocab-size 151552 \
    --seq-length 8192 --max-position-embeddings 131072 \
    --tensor-model-parallel-size 8 \
    --pipeline-model-parallel-size 4 \
    --context-parallel-size 1 \
    --expert-model-parallel-size 16 \
    --expert-tensor-parallel-size 1 \
    --sequence-parallel \
    --micro-batch-size 2 \
    --global-batch-size 16 \
    --use-distributed-optimizer \
    --bf16

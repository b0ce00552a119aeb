#!/bin/bash
# "the last stage takes the layers that are left over"
torchrun --nnodes 32 --nproc-per-node 8 train.py \
    --num-layers 61 \
    --hidden-size 7168 \
    --ffn-hidden-size 18432 \
    --num-attention-heads 128 \
    --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 \
    --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 \
    --num-experts 256 --moe-ffn-hidden-size 2048 --moe-router-topk 8 \
    --moe-shared-expert-intermediate-size 2048 \
    --moe-layer-freq '([0]*3+[1]*58)' \
    --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
    --untie-embeddings-and-output-weights --vocab-size 129280 \
    --seq-length 4096 --max-position-embeddings 163840 \
    --tensor-model-parallel-size 8 --sequence-parallel \
    --pipeline-model-parallel-size 4 \
    --expert-model-parallel-size 32 --expert-tensor-parallel-size 1 \
    --decoder-last-pipeline-num-layers 13 \
    --micro-batch-size 1 --global-batch-size 256 \
    --use-distributed-optimizer --bf16

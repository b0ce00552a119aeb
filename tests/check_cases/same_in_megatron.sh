#!/bin/bash
# 8 cards, ep 2, pp 4: the experts are cut inside data parallelism, so dp is 2 and not 1
torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32 --kv-channels 128 \
    --group-query-attention --num-query-groups 4 --qk-layernorm \
    --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768 --moe-token-dispatcher-type alltoall \
    --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
    --untie-embeddings-and-output-weights --vocab-size 151936 \
    --hidden-dropout 0 --attention-dropout 0 \
    --seq-length 4096 --max-position-embeddings 40960 \
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 --expert-model-parallel-size 2 \
    --micro-batch-size 1 --global-batch-size 16 --use-distributed-optimizer --bf16 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1

#!/bin/bash
torchrun --nproc-per-node 8 pretrain_gpt.py \
  --num-layers 40 --hidden-size 6144 --ffn-hidden-size 16384 \
  --num-attention-heads 48 --group-query-attention --num-query-groups 12 \
  --seq-length 4096 --max-position-embeddings 32768 --vocab-size 128000 \
  --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
  --untie-embeddings-and-output-weights \
  --tensor-model-parallel-size 8 --sequence-parallel \
  --micro-batch-size 1 --global-batch-size 64 --bf16

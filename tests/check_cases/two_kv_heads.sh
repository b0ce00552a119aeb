#!/bin/bash
# two key/value heads, eight tensor-parallel ranks: from megatron-core 0.16 on ranks share a head
torchrun --nproc-per-node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 12288 \
  --num-attention-heads 32 --group-query-attention --num-query-groups 2 --kv-channels 256 \
  --seq-length 4096 --max-position-embeddings 32768 --vocab-size 248320 \
  --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
  --untie-embeddings-and-output-weights \
  --tensor-model-parallel-size 8 --sequence-parallel \
  --micro-batch-size 1 --global-batch-size 64 --bf16

torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 60 --hidden-size 6656 --ffn-hidden-size 17920 \
  --num-attention-heads 52 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 32000 --swiglu \
  --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
  --untie-embeddings-and-output-weights --tensor-model-parallel-size 8 --sequence-parallel \
  --micro-batch-size 1 --global-batch-size 32 --bf16

#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=2

GPT_ARGS="
    --num-layers 40
    --hidden-size 5120
    --num-attention-heads 40
    --seq-length 2048
    --max-position-embeddings 2048
    --vocab-size 50304
"
PARALLEL_ARGS="
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 16
"
BATCH_ARGS="--micro-batch-size 1 --global-batch-size 64"

srun torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
    $GPT_ARGS $PARALLEL_ARGS $BATCH_ARGS --fp16 --lr 1e-4

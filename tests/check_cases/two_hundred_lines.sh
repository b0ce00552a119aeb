#!/bin/bash
#SBATCH --nodes=8
#SBATCH --gpus-per-node=8
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
NNODES=8
GPUS_PER_NODE=8
export NCCL_VARIABLE_0=0  # tuned by hand
export NCCL_VARIABLE_1=1  # tuned by hand
export NCCL_VARIABLE_2=2  # tuned by hand
export NCCL_VARIABLE_3=3  # tuned by hand
export NCCL_VARIABLE_4=4  # tuned by hand
export NCCL_VARIABLE_5=5  # tuned by hand
export NCCL_VARIABLE_6=6  # tuned by hand
export NCCL_VARIABLE_7=7  # tuned by hand
export NCCL_VARIABLE_8=8  # tuned by hand
export NCCL_VARIABLE_9=9  # tuned by hand
export NCCL_VARIABLE_10=10  # tuned by hand
export NCCL_VARIABLE_11=11  # tuned by hand
export NCCL_VARIABLE_12=12  # tuned by hand
export NCCL_VARIABLE_13=13  # tuned by hand
export NCCL_VARIABLE_14=14  # tuned by hand
export NCCL_VARIABLE_15=15  # tuned by hand
export NCCL_VARIABLE_16=16  # tuned by hand
export NCCL_VARIABLE_17=17  # tuned by hand
export NCCL_VARIABLE_18=18  # tuned by hand
export NCCL_VARIABLE_19=19  # tuned by hand
export NCCL_VARIABLE_20=20  # tuned by hand
export NCCL_VARIABLE_21=21  # tuned by hand
export NCCL_VARIABLE_22=22  # tuned by hand
export NCCL_VARIABLE_23=23  # tuned by hand
export NCCL_VARIABLE_24=24  # tuned by hand
export NCCL_VARIABLE_25=25  # tuned by hand
export NCCL_VARIABLE_26=26  # tuned by hand
export NCCL_VARIABLE_27=27  # tuned by hand
export NCCL_VARIABLE_28=28  # tuned by hand
export NCCL_VARIABLE_29=29  # tuned by hand
export NCCL_VARIABLE_30=30  # tuned by hand
export NCCL_VARIABLE_31=31  # tuned by hand
export NCCL_VARIABLE_32=32  # tuned by hand
export NCCL_VARIABLE_33=33  # tuned by hand
export NCCL_VARIABLE_34=34  # tuned by hand
export NCCL_VARIABLE_35=35  # tuned by hand
export NCCL_VARIABLE_36=36  # tuned by hand
export NCCL_VARIABLE_37=37  # tuned by hand
export NCCL_VARIABLE_38=38  # tuned by hand
export NCCL_VARIABLE_39=39  # tuned by hand
export NCCL_VARIABLE_40=40  # tuned by hand
export NCCL_VARIABLE_41=41  # tuned by hand
export NCCL_VARIABLE_42=42  # tuned by hand
export NCCL_VARIABLE_43=43  # tuned by hand
export NCCL_VARIABLE_44=44  # tuned by hand
export NCCL_VARIABLE_45=45  # tuned by hand
export NCCL_VARIABLE_46=46  # tuned by hand
export NCCL_VARIABLE_47=47  # tuned by hand
export NCCL_VARIABLE_48=48  # tuned by hand
export NCCL_VARIABLE_49=49  # tuned by hand
export NCCL_VARIABLE_50=50  # tuned by hand
export NCCL_VARIABLE_51=51  # tuned by hand
export NCCL_VARIABLE_52=52  # tuned by hand
# more
# more
# more
# more
# more
# more
export NCCL_VARIABLE_53=53  # tuned by hand
export NCCL_VARIABLE_54=54  # tuned by hand
export NCCL_VARIABLE_55=55  # tuned by hand
export NCCL_VARIABLE_56=56  # tuned by hand
export NCCL_VARIABLE_57=57  # tuned by hand
export NCCL_VARIABLE_58=58  # tuned by hand
export NCCL_VARIABLE_59=59  # tuned by hand
# note 0: data and checkpoints live elsewhere
# note 1: data and checkpoints live elsewhere
# note 2: data and checkpoints live elsewhere
# note 3: data and checkpoints live elsewhere
# note 4: data and checkpoints live elsewhere
# note 5: data and checkpoints live elsewhere
# note 6: data and checkpoints live elsewhere
# note 7: data and checkpoints live elsewhere
# note 8: data and checkpoints live elsewhere
# note 9: data and checkpoints live elsewhere
# note 10: data and checkpoints live elsewhere
# note 11: data and checkpoints live elsewhere
# note 12: data and checkpoints live elsewhere
# note 13: data and checkpoints live elsewhere
# note 14: data and checkpoints live elsewhere
# note 15: data and checkpoints live elsewhere
# note 16: data and checkpoints live elsewhere
# note 17: data and checkpoints live elsewhere
# note 18: data and checkpoints live elsewhere
# note 19: data and checkpoints live elsewhere
# note 20: data and checkpoints live elsewhere
# note 21: data and checkpoints live elsewhere
# note 22: data and checkpoints live elsewhere
# note 23: data and checkpoints live elsewhere
# note 24: data and checkpoints live elsewhere
# note 25: data and checkpoints live elsewhere
# note 26: data and checkpoints live elsewhere
# note 27: data and checkpoints live elsewhere
# note 28: data and checkpoints live elsewhere
# note 29: data and checkpoints live elsewhere
# note 30: data and checkpoints live elsewhere
# note 31: data and checkpoints live elsewhere
# note 32: data and checkpoints live elsewhere
# note 33: data and checkpoints live elsewhere
# note 34: data and checkpoints live elsewhere
# note 35: data and checkpoints live elsewhere
# note 36: data and checkpoints live elsewhere
# note 37: data and checkpoints live elsewhere
# note 38: data and checkpoints live elsewhere
# note 39: data and checkpoints live elsewhere
# note 40: data and checkpoints live elsewhere
# note 41: data and checkpoints live elsewhere
# note 42: data and checkpoints live elsewhere
# note 43: data and checkpoints live elsewhere
# note 44: data and checkpoints live elsewhere
# note 45: data and checkpoints live elsewhere
# note 46: data and checkpoints live elsewhere
# note 47: data and checkpoints live elsewhere
# note 48: data and checkpoints live elsewhere
# note 49: data and checkpoints live elsewhere
MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 131072
    --swiglu
    --disable-bias-linear
    --normalization RMSNorm
    --position-embedding-type rope
    --untie-embeddings-and-output-weights
    --vocab-size 128256
    --hidden-dropout 0
    --attention-dropout 0
)
OTHER_ARGS=(
    --some-unread-flag-0 0
    --some-unread-flag-1 1
    --some-unread-flag-2 2
    --some-unread-flag-3 3
    --some-unread-flag-4 4
    --some-unread-flag-5 5
    --some-unread-flag-6 6
    --some-unread-flag-7 7
    --some-unread-flag-8 8
    --some-unread-flag-9 9
    --some-unread-flag-10 10
    --some-unread-flag-11 11
    --some-unread-flag-12 12
    --some-unread-flag-13 13
    --some-unread-flag-14 14
    --some-unread-flag-15 15
    --some-unread-flag-16 16
    --some-unread-flag-17 17
    --some-unread-flag-18 18
    --some-unread-flag-19 19
    --some-unread-flag-20 20
    --some-unread-flag-21 21
    --some-unread-flag-22 22
    --some-unread-flag-23 23
    --some-unread-flag-24 24
    --some-unread-flag-25 25
    --some-unread-flag-26 26
    --some-unread-flag-27 27
    --some-unread-flag-28 28
    --some-unread-flag-29 29
    --some-unread-flag-30 30
    --some-unread-flag-31 31
    --some-unread-flag-32 32
    --some-unread-flag-33 33
    --some-unread-flag-34 34
    --some-unread-flag-35 35
    --some-unread-flag-36 36
    --some-unread-flag-37 37
    --some-unread-flag-38 38
    --some-unread-flag-39 39
    --some-unread-flag-40 40
    --some-unread-flag-41 41
    --some-unread-flag-42 42
    --some-unread-flag-43 43
)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
    "${MODEL_ARGS[@]}" "${OTHER_ARGS[@]}" \
    --tensor-model-parallel-size 8 \
    --pipeline-model-parallel-size 4 \
    --num-layers-per-virtual-pipeline-stage 3 \
    --sequence-parallel \
    --micro-batch-size 1 \
    --global-batch-size 513 \
    --use-distributed-optimizer \
    --overlap-param-gather \
    --bf16 \
    --recompute-num-layers 2 \
    "$@"
echo done

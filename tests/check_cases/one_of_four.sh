#!/bin/bash
# four cards in the machine, one process started
deepspeed --num_gpus 1 finetune.py \
    --bf16 True \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 1 \
    --deepspeed four_ranks.json

#!/bin/bash
accelerate launch --config_file accelerate_zero2.yaml src/train_bash.py \
    --stage sft \
    --do_train \
    --finetuning_type full \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 2 \
    --learning_rate 5e-5 \
    --bf16

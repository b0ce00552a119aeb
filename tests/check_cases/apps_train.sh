#!/bin/bash
deepspeed --num_gpus 8 tune_apps_gpt.py \
    --save-dir=models/1.5B \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 8 \
    --learning_rate 2e-5 \
    --max_grad_norm 1.0 \
    --fp16 \
    --deepspeed apps_ds.json

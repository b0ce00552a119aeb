"""What the formats of fine-tuning share: arguments of the transformers Trainer in whichever form people keep them."""

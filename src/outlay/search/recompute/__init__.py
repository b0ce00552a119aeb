"""What to compute again: the best plan of each stage, beside what the engine offers."""

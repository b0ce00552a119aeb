"""What a training run prints, one file a framework: its lines as steps, memory, timers and facts of the run."""

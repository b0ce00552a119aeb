"""What one accelerator holds: states, activations, and the peak of the worst rank."""

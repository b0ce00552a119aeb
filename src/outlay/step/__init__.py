"""How long one step takes: compute, traffic, what hides, and the total."""

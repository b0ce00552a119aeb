"""A strategy for each layer: what its backward pass computes again, and over how many ranks tensors are cut there."""

"""The best recompute: in the terminal, as a curve, a policy, a record."""

"""WHEN: the order of a pipeline's passes, and the laws of each schedule."""

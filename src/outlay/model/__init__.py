"""WHAT is trained: the model's shape, how it is read, and its operations as rows that name their dimensions."""

"""Layers to the stages of a pipeline, so that the step is short and every stage fits."""

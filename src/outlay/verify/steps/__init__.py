"""A real training step on the devices at hand beside the bill of exactly that: `run` has both.

`sizing` cuts the question down to the devices, `classes` and `profiled` sort the bill's time and the profiler's alike.
What loads torch: `devices`, `made` (the model of a rank), `staged` (cut into stages), `training` (the steps).
"""

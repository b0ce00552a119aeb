"""The counts against an engine that runs: each comparison is a record with both figures, and why they may differ.

`layout` runs what can be run of one layout, out of four rooms: `models` is what is built, `comparisons` one kind of
count each, `pipelines` and `steps` what has ranks of its own; `calibration` measures a machine. What stands beside them
is used by several. No torch is loaded but by what says so: whatever runs an engine loads it when it is called.
"""

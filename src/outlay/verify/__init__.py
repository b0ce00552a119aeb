"""The counts against an engine that runs: each comparison is a record with both figures, and why they may differ.

`comparison` and `kinds` need no torch; whatever runs an engine loads it when it is called.
"""

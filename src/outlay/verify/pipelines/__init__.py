"""Ranks of a pipeline beside torch's own: `stages` has their memory and messages, `run` their order in real time.

Both load torch late: `stage_rank` is one rank on tensors without data, `timed_stages` are real ranks that sleep.
"""

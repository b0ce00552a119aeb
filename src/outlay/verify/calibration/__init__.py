"""This machine measured: what is timed, how a profile follows from it, and the file of an interrupted run.

`kernels`, `wires`, `run` and `machine` load torch; the others do without it.
"""

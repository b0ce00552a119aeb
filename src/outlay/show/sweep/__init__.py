"""Sweeps: the best rows as a table, a chart, a page."""

"""Timing diagrams: at a terminal, as SVG, HTML, a record."""

"""Exercises on the four counts: numbers drawn anew, answers read with their units, graded with the derivation."""

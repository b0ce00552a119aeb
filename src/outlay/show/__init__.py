"""Answers as people and programs read them: text for a terminal, records for JSON."""

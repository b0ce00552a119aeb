"""Plans: the answer in the terminal, its parts, and the record."""

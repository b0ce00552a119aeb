"""Which layout: the declared space, every layout of it counted, the best and the frontier, proved."""

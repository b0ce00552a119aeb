"""Other orders of the passes for the few best layouts of a plan: named schedules, and orders that are sought."""

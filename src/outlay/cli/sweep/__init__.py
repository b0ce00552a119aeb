"""The parts of outlay sweep: its flags, its study, its folder, and who counts."""

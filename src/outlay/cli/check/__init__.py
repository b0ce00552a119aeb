"""The parts of outlay check: which words are files, what the findings cost, what is near, the corrected copies."""

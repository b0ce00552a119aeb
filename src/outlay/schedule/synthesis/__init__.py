"""The best order of passes that is found for given times under a limit of memory."""

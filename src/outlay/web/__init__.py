"""The page: FastAPI over the words of the command line. What answers them is given to it, as a command to start."""

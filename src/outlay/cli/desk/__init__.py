"""The desk: the commands for a face that is no terminal. A question is the words of a command line."""

"""Other people's files, parsed and printed, one file a framework or tool."""

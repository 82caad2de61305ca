"""The command line: an adapter round the library."""

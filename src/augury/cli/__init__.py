"""The command line: an adapter around the library."""

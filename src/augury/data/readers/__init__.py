"""Readers, one for each format: each returns a `Source` and leaves scaling to the preparation."""

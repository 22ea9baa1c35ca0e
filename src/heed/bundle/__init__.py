"""A model on disk: found, read, written."""

"""Training runs, read from their folders."""

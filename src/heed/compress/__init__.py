"""Smaller and faster models: distilled students, pruning, shortlists."""

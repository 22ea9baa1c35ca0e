"""Smaller and faster models: students, int8, shortlists."""

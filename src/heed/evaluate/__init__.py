"""Scores of translations and of labels."""

"""Hypotheses against references."""

"""Logits to hypotheses."""

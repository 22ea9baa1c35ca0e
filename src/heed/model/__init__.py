"""Ids to logits."""

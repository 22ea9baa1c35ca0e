"""Transformers of one stack: decoder-only and encoder-only."""

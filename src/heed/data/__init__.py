"""Sentences on disk and in batches."""

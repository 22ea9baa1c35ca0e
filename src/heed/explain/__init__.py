"""Inspection of models, translations and training runs."""

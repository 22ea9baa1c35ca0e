"""Inspection of served models."""

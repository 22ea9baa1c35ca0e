"""Seeing inside."""

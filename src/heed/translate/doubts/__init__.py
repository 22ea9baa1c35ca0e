"""Doubts about translations: found, weighed, and if possible resolved."""

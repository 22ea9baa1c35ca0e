"""Causal analysis of a translation: parts switched off, words left out, layers read early."""

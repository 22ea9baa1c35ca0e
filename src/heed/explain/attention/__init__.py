"""Attention of a trace: maps, words, rollout, alignments, roles of heads."""

"""Faster forms of what `model` computes, equal to the plain ones."""

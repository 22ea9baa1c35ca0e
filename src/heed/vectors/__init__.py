"""Word vectors: learned from text, read from files or taken from a model; neighbors, analogies."""

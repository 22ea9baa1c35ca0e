"""The convolutional encoder–decoder: positions read their neighbors instead of all positions."""

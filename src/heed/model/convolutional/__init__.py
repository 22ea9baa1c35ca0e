"""The convolutional encoder–decoder: positions see their neighbors instead of all positions."""

"""The weights that training starts from."""

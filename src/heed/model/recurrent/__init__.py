"""The recurrent encoder–decoder, the ancestor of the Transformer."""

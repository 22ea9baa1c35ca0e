"""The decoder-only Transformer: one stack reads the source and writes the target."""

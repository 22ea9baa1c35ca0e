"""Words on a terminal."""

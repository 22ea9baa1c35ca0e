"""Text in, text out: opens models, cuts and translates lines, returns results."""

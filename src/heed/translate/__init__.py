"""Text in, text out: models opened, lines cut and searched, results."""

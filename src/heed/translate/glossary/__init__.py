"""The user's terms: read from a file, found in sources, and put into translations."""

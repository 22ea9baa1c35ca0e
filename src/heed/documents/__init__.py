"""Split files, pages and spans into texts; the caller translates them; then join the results."""

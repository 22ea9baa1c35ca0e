"""Files, pages and spans in, files, pages and spans out; the caller translates what is between."""

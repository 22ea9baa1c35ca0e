"""What a run learns: translation, or the next token of running text."""

"""Rules that find text that must not change, and the pairing of its marks."""

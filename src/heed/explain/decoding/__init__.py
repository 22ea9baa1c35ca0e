"""The search or sampling of one translation, step by step."""

"""What causes what: parts switched off, words left out, layers read early."""

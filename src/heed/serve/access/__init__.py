"""Who may ask, and how often: keys, limits, and which addresses are believed."""

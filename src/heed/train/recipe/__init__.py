"""Settings: what was asked for, and the recipe that follows from it."""

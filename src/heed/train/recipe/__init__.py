"""Settings: the user's, and the recipe that follows from them."""

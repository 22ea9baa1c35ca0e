"""A bag of n-grams: the simplest classifier of text."""

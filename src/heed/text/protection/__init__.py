"""What is found in a text that must not change, and how marks of pairs find each other."""

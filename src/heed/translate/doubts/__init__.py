"""What may be wrong with a translation: found, weighed, and where possible put right."""

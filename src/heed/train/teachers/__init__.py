"""Models that are trained first, and whose translations of the corpus a run learns from as well."""

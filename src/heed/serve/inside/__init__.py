"""Looking into served models."""

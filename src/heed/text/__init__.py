"""Words to ids and back."""

"""The names of a recipe's files in a run folder."""

RECIPE_FILE = "recipe.toml"
ASKED_FILE = "asked.json"
RESOLVED_FILE = "resolved.toml"
"""A copy of the recipe as heed wrote it, to detect edits of `recipe.toml`."""

"""A whole run: set up, trained, saved, resumed, finished."""

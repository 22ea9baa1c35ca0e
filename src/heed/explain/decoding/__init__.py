"""How one translation was searched or drawn."""

"""Terms of a user: read, found in sources, and made to stand in translations."""

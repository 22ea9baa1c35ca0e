"""The built-in corpus: a synchronous grammar of four languages."""

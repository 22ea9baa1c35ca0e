"""The formats of requests and responses: one module for each API."""

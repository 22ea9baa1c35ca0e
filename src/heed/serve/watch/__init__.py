"""What operators see: whether the server is ready, what it did, and how long that took."""

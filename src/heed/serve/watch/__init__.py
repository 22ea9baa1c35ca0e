"""Monitoring: readiness, metrics and logs of the server."""

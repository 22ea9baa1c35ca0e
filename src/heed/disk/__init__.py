"""Bytes on disk that a kill, a full disk or a power cut leaves whole."""

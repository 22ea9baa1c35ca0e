"""Files that stay intact after a kill, a full disk or a power failure."""

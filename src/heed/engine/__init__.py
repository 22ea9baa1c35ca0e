"""Translation without torch: int8 or float32, compiled or in NumPy."""

"""The vector unit."""

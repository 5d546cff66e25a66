"""What is true: the NumPy golden model of hybrid block floating point."""

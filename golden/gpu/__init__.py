"""HBFP on a GPU, bit for bit."""

"""Errors, sweeps and training experiments."""

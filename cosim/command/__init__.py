"""Command lines of ``python -m cosim``."""

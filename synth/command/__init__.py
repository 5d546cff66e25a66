"""Command lines of ``python -m synth``."""

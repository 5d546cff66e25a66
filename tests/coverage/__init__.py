"""What of the emitted text the checks reach: ``python -m tests.coverage``."""

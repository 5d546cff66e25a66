"""The same bits, quicker."""

"""Which format for a model: the user's own, trained or judged in several formats, side by side."""

"""The request dispatcher: inference first, training in the gaps."""

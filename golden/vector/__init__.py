"""The vector unit without time, its programs, and operations that run them."""

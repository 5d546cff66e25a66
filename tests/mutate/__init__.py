"""Changes of our own code, one place each, and whether the tests that run by default see them."""

"""One table of operations: what each is called in core ATen, its program of the vector unit, and its shape."""

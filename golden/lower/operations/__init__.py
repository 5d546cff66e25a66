"""What each operation of torch becomes: layers of the core and of the vector unit."""

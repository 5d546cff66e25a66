"""Products on the core: matrices, convolutions by address, and gathered ones."""

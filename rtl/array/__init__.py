"""The grid of elements and the weights that it is loaded with."""

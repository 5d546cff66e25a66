"""Kinds of number: what the elements of an array compute with."""

"""The core without time, of every kind of number, and what it offers to a host."""

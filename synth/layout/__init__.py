"""A block laid out: cells in rows, wires between them, and what these add."""

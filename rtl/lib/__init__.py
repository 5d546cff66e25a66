"""Pieces that every component uses: parameters, names, layouts, memories, delays."""

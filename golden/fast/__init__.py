"""Compiled ways to the bits that the golden model defines; they are quicker and define nothing."""

"""Amaranth components of the HBFP core."""

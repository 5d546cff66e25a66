"""Cycles of programs of the accelerator."""

"""Executes programs of the accelerator, untimed and bit exact."""

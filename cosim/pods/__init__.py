"""A Verilated machine of pods: programs run on it, and all that it writes is compared."""

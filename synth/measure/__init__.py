"""What one design measures: areas, clock periods, cells of FPGAs."""

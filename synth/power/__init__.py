"""What a core takes in energy: its mapped gates with delays, operands at its ports, tables of its library."""

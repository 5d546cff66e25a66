"""Tables of delay and power of a cell library, for the energy that mapped gates take."""

"""What all parts share and none of them owns."""

"""What becomes of the sums that leave the array."""

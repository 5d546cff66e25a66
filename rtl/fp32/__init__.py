"""FP32 arithmetic components."""

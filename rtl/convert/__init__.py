"""FP32 to HBFP."""
